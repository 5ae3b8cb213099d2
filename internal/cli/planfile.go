package cli

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// savedPlan is the name of the file, beside a run, with the plan of the run.
const savedPlan = "plan.yaml"

// settle adds settings from the environment and the plan's file to those of the command line. It then applies
// settings such as --quick, which imply others.
func (o *options) settle(e Env) {
	if o.Flags.Lookup(settings.FileFlag) == nil {
		return
	}
	o.Lists = map[string]*yaml.Node{phasesKey: nil}
	if o.Hide = o.plan.Attach.Secrets.Take; o.listing {
		o.Lists[servicesKey] = nil
	}
	e.misspelt(o)
	o.Settle(e.Getenv)
	o.settlePhases()
	o.settlePresets()
	o.settleLoad()
	o.settleServices()
}

// ownVariables lists the environment variables that the suite sets for its child processes, which may call the suite.
// They are not reported as misspelt.
var ownVariables = []string{"HAMMERLOCK_CLOCK", "HAMMERLOCK_ENDS", "HAMMERLOCK_SYNCED"}

// misspelt reports environment variables whose names are nearly those of flags. It ignores other unknown variables: a
// script may use them, or Kubernetes may set them for a service called hammerlock.
func (e Env) misspelt(o *options) {
	var known []string
	for _, v := range e.Environ {
		variable, value, _ := strings.Cut(v, "=")
		name, is := strings.CutPrefix(variable, settings.EnvironmentPrefix)
		if !is || value == "" || slices.Contains(ownVariables, variable) {
			continue
		}
		if known == nil {
			known = append(variablesOf(e.benchCommand()), variablesOf(e.verifyCommand())...)
		}
		if hint := human.Meant(name, known); hint != "" && !slices.Contains(known, name) {
			o.Mistake("", "%s: no such variable%s", variable, strings.Replace(hint, "mean ",
				"mean "+settings.EnvironmentPrefix, 1))
		}
	}
}

// variablesOf lists the environment variables of a command and all its subcommands, without the prefix HAMMERLOCK_.
func variablesOf(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		for _, name := range settings.Variables(f.Name) {
			names = append(names, strings.TrimPrefix(name, settings.EnvironmentPrefix))
		}
	})
	for _, sub := range c.Commands() {
		names = append(names, variablesOf(sub)...)
	}
	return names
}

// placed adds to each mistake the place, such as a line of the plan's file, where its value was set.
func (o *options) placed(err error) error {
	usage, ok := errors.AsType[*harness.UsageError](err)
	if !ok || err.Error() != usage.Error() { // err has other errors besides the mistakes
		return err
	}
	return &harness.UsageError{Mistakes: o.Placed(usage.Mistakes)}
}

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
func (s *series) savePlan(dir string) error {
	if s.o.File == "" {
		return nil
	}
	return writeFile(filepath.Join(dir, savedPlan), os.O_TRUNC, s.o.writePlan)
}
