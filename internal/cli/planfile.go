package cli

import (
	"cmp"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// savedPlan is the name of the file, beside a run, with the plan of the run.
const savedPlan = "plan.yaml"

// writePlan writes the final plan as a plan's file. Each line has the origin of its value as a comment.
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

// savePlan saves the final plan beside a run, if the plan comes from a file.
func (o *options) savePlan(_ *reports, dir string) error {
	if o.File == "" {
		return nil
	}
	return writeFile(filepath.Join(dir, savedPlan), os.O_TRUNC, o.writePlan)
}
