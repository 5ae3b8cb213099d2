package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

// saveSweep saves a sweep as one run, whose report shows the picture. A sweep explores a lock while one number grows,
// such as the length of a pause. It returns the directory of the run.
func (x *exploreOptions) saveSweep(all []explore.Report, started time.Time) (string, error) {
	var b bytes.Buffer
	if err := explore.WriteEnvelopesSVG(&b, all); err != nil {
		return "", err
	}
	x.picture = b.String()
	var names []string
	var verdicts []checker.Verdict
	for _, r := range all {
		names = append(names, r.Lock)
		verdicts = append(verdicts, checker.Stated(exploreScenario.Name, r.Status, "", r.Lock+": "+r.Verdict()))
	}
	locks := strings.Join(names, ",")
	run := harness.Explored(filepath.Base(folder(x.plan, "explore-sweep")), locks,
		"verify explore --sweep "+quote(x.sweep)+" --lock "+locks, &all[0].Options)
	run.Started, run.Topology, run.Verdicts = started, "in memory", verdicts
	run.Label = "explored: one deviation while a number of it grows, in virtual time; nothing was measured"
	dir, err := results.OpenFolder(x.plan.Out, run.Name)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(dir.Path(results.EnvelopeFile), b.Bytes(), 0o644); err != nil {
		return "", errors.Join(err, dir.Leave())
	}
	return dir.Commit(run)
}
