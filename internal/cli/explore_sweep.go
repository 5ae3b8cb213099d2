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
	"hammerlock/results"
)

// saveSweep saves a sweep as a run, so that its report shows the picture. It returns the directory.
func (x *exploreOptions) saveSweep(all []explore.Report, started time.Time) (string, error) {
	var b bytes.Buffer
	if err := explore.WriteEnvelopesSVG(&b, all); err != nil {
		return "", err
	}
	if x.svg != "" {
		if err := os.WriteFile(x.svg, b.Bytes(), 0o644); err != nil {
			return "", err
		}
	}
	o := all[0].Options
	run := results.Run{
		Started: started, Explored: true, Topology: "in memory", Command: "verify explore --sweep " + quote(x.sweep),
		Label: "explored: one deviation while a number of it grows, in virtual time; nothing was measured",
		Config: results.Config{Workers: o.Clients, Processes: o.Clients, Keys: 1, TTL: int64(o.TTL),
			Hold: int64(o.Hold)},
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Lock)
		run.Verdicts = append(run.Verdicts,
			checker.Stated(exploreScenario.Name, r.Status, "", r.Lock+": "+r.Verdict()))
	}
	run.Lock = strings.Join(names, ",")
	run.Command += " --lock " + run.Lock
	run.Name = filepath.Base(folder(x.plan, "explore-sweep"))
	dir, err := results.OpenFolder(x.plan.Out, run.Name)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(dir.Path(results.EnvelopeFile), b.Bytes(), 0o644); err != nil {
		return "", errors.Join(err, dir.Leave())
	}
	return dir.Commit(&run)
}
