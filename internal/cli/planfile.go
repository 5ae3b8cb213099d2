package cli

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// savedPlan is the file beside a run that has its plan.
const savedPlan = "plan.yaml"

// settle completes the command line from the environment and the plan's file. It then expands settings that imply
// others.
func (o *options) settle(getenv func(string) string) {
	if o.Flags.Lookup(settings.FileFlag) == nil {
		return
	}
	o.Lists = map[string]*yaml.Node{phasesKey: nil}
	if o.Hide = o.plan.Attach.Secrets.Take; o.listing {
		o.Lists[servicesKey] = nil
	}
	o.Settle(getenv)
	o.settlePhases()
	o.settlePresets()
	o.settleLoad()
	o.settleServices()
}

// placed adds the places of values to the errors about them.
func (o *options) placed(err error) error {
	usage, ok := errors.AsType[*harness.UsageError](err)
	if !ok || err.Error() != usage.Error() { // there are other errors, too
		return err
	}
	return &harness.UsageError{Mistakes: o.Placed(usage.Mistakes)}
}

// writePlan writes the resolved plan in the form of a plan's file, with the origin of each value.
func (o *options) writePlan(w io.Writer) error {
	p := &human.Printer{W: w}
	scenarios := (len(o.plan.Scenarios) > 0 || o.explores) && len(o.services) == 0 // services need the load of the plan
	o.Flags.VisitAll(func(f *pflag.Flag) {
		if !settings.Settable(f) {
			return
		}
		v, origin := settings.ValueOf(f), o.Origins[f.Name]
		unused := scenarios && (v.Part == load || v.Part == instead)
		if said(&o.plan, f.Name) || origin == "" && v.Text == "" || unused {
			return
		}
		origin = cmp.Or(origin, "default")
		settings.Write(p, "", "", f.Name, v, origin)
	})
	o.writePhases(p)
	o.writeServices(p)
	return p.Err
}

// savePlan saves the resolved plan beside a run, if the plan comes from a file.
func (s *series) savePlan(dir string) error {
	if s.o.File == "" {
		return nil
	}
	return writeFile(filepath.Join(dir, savedPlan), os.O_TRUNC, s.o.writePlan)
}
