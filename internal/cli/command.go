package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// The method command sets the function that the command c runs: it calls the argument do. The library stops at the
// first wrong flag. Here the options collect all mistakes in flags instead, and do runs in any case. So do can find
// more mistakes, and report all of them together.
func (e Env) command(c *cobra.Command, o *options, do func(ctx context.Context, args []string) int) *cobra.Command {
	arguments := c.Args
	o.plan.Getenv = e.Getenv
	if o.Value(addrFlag) != nil {
		e.attached(o)
	}
	c.Args = cobra.ArbitraryArgs
	c.FParseErrWhitelist.UnknownFlags = true
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		o.Mistake("", "%s", withoutValue(err))
		return c.RunE(c, c.Flags().Args())
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.list {
			return ended(e.end(Exit{}, writeList(e.Stdout, e.knows())))
		}
		e.unknownFlags(o, c)
		if err := arguments(c, args); err != nil {
			o.Mistake("", "%v", err)
		}
		e.misspelt(o)
		o.settle(e)
		o.unattached(args)
		if o.Unread { // the file of the plan could not be read, so further checks would report false mistakes
			return ended(e.refuse(c.Context(), o, o.invalid()))
		}
		return ended(do(c.Context(), args))
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if v := settings.ValueOf(f); v != nil && v.Complete != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, v.Complete) // it only fails if it is called twice
		}
	})
	return c
}

// simple adapts a function for commands without checks of their own. It first reports mistakes in flags. An error
// becomes a general exit code.
func (e Env) simple(o *options, do func(ctx context.Context, args []string) error) func(context.Context, []string) int {
	return func(ctx context.Context, args []string) int {
		err := o.invalid()
		if err == nil {
			err = do(ctx, args)
		}
		if err != nil {
			return e.refuse(ctx, o, err)
		}
		return Passed
	}
}

// The function takes returns a check of the number of arguments. Its error about a superfluous argument suggests a
// command or a flag that the user may have meant.
func (e Env) takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return fmt.Errorf("missing argument: %s; see %s --help", c.UseLine(), c.CommandPath())
		}
		names := below(c)
		var errs []error
		for i := most; i < len(args); i++ {
			command := e.misplaced(c, args[i])
			hint := cmp.Or(command, human.Meant(args[i], names), valueOf(c, args[i]), longDash(args[i]))
			if i == most {
				hint = cmp.Or(hint, expected(c))
			}
			errs = append(errs, fmt.Errorf("%q: unexpected argument%s", args[i], hint))
			if names = nil; command != "" {
				break // the other arguments belong to the command that is suggested
			}
		}
		return errors.Join(errs...)
	}
}

// valueOf looks for a flag that accepts arg as its value, and returns a hint such as "did you mean --lock lease?".
// The hint is empty if there is no such flag.
func valueOf(c *cobra.Command, arg string) (hint string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if v := settings.ValueOf(f); v != nil && hint == "" && slices.Contains(v.Enum, arg) {
			hint = fmt.Sprintf("; did you mean --%s %s?", f.Name, arg)
		}
	})
	return hint
}

// unlimited is passed to takes for a command that accepts any number of arguments.
const unlimited = math.MaxInt

// withoutValue returns the text of an error. If the error is a last flag without a value, the text has an example of
// a value.
func withoutValue(err error) string {
	missing, ok := errors.AsType[*pflag.ValueRequiredError](err)
	if !ok {
		return err.Error()
	}
	f := missing.GetFlag()
	return fmt.Sprintf("--%s: its value is missing, as in --%s %s", f.Name, f.Name,
		cmp.Or(f.DefValue, strings.ToUpper(f.Value.Type())))
}

// longDash returns a hint on an argument that was pasted from a document which turned two dashes into one long dash.
func longDash(arg string) string {
	if name := strings.TrimLeft(arg, "–—"); name != arg {
		return "; it begins with a long dash: type --" + name
	}
	return ""
}

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
	o.Settle(e.Getenv)
	o.settlePhases()
	o.settlePresets()
	o.settleLoad()
	o.settleServices()
}
