package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// meantFlag suggests a flag for an argument that is nearly one: misspelt, with one dash, or with a colon for "=".
func meantFlag(arg string, good []string) string {
	name := strings.TrimLeft(arg, "-")
	if at := strings.IndexAny(name, "=:"); at > 0 {
		name = name[:at]
	}
	return strings.Replace(human.Meant(name, good), "mean ", "mean --", 1)
}

// otherNames maps flags of other load tools and Redis clients to flags of this suite.
var otherNames = map[string]string{
	"url": "addr", "host": "addr", "uri": "addr", "server": "addr", "h": "addr", "p": "addr",
	"password": "password-file",
	"pass":     "password-file", "clients": "workers", "concurrency": "workers", "connections": "workers",
	"threads": "workers",
	"vus":     "workers", "users": "workers", "c": "workers", "t": "workers", "w": "workers", "u": "workers",
	"qps": "rate", "rps": "rate", "r": "rate", "z": "duration", "n": "count", "s": "seed",
	"d":    "duration",
	"time": "duration", "timeout": "patience", "delay": "backoff", "slo": "gate", "threshold": "gate", "output": "json",
	"o": "out", "format": "json", "config": "plan", "f": "plan", "runs": "count", "repeat": "count", "db": "addr",
	"appendonly":  "aof",
	"appendfsync": "aof", "durability": "aof",
}

// retired maps flags that were removed to a hint about their replacements.
var retired = map[string]string{
	"phases": "; phases stand in a plan's file, as in --plan FILE with " +
		"phases: [{phase: steady, duration: 10s, rate: 100/s}]: docs/PLAN.md",
	"go-on": "; --fail-fast=false goes on after a round that failed",
	"real":  "; verify export RUN --test FILE writes a counterexample as a test on a real server",
}

// unknownFlag returns a hint on an unknown flag: a similar flag, our name for another tool's flag, or the command
// that has such a flag.
func (e Env) unknownFlag(c *cobra.Command, arg string, good []string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if instead := retired[name]; instead != "" {
		return instead
	}
	if meant := meantFlag(arg, good); meant != "" {
		return meant
	}
	if other := otherNames[name]; slices.Contains(good, other) {
		return "; did you mean --" + other + "?"
	}
	for _, root := range []*cobra.Command{c.Root(), e.otherProgram(c)} {
		for _, sub := range append([]*cobra.Command{root}, root.Commands()...) {
			if f := sub.Flags().Lookup(name); f != nil && !f.Hidden && !sub.Hidden {
				return fmt.Sprintf("; %s has it", sub.CommandPath())
			}
		}
	}
	return fmt.Sprintf("; see %s --help", c.CommandPath())
}

// libraryCommands replaces the functions of "help" and "completion", which the library provides. With a wrong
// argument, the library's functions would print help and exit with 0.
func (e Env) libraryCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if found.Hidden { // the argument may also name a section: a hidden command can have the same name
					found, rest = found.Parent(), args[len(args)-1:]
				}
				if len(rest) == 1 && e.helpOfSection(found, rest[0]) {
					return nil
				}
				if err == nil && len(rest) > 0 {
					good := append(human.Names(sections, func(s settings.Section) string { return s.Name }),
						below(found)...)
					return usage("help %s: no such command%s", rest[0],
						cmp.Or(e.misplaced(c, rest[0]), human.Meant(rest[0], good), expected(found)))
				}
				return errors.Join(err, found.Help())
			}
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
				shell := strings.Join(args, " ")
				if shell == "" {
					return usage("completion: a shell is missing, as in %s %s; there is %s", c.CommandPath(),
						e.shell(below(c)), strings.Join(below(c), ", "))
				}
				return usage("completion %s: %s", shell, human.Instead(shell, below(c)))
			}
		}
	}
}

// shell returns the user's shell if the list has it, and the first of the list otherwise.
func (e Env) shell(all []string) string {
	if own := path.Base(e.Getenv("SHELL")); slices.Contains(all, own) {
		return own
	}
	return all[0]
}

// otherProgram returns the root command of verify for a command of bench, and that of bench for one of verify.
func (e Env) otherProgram(c *cobra.Command) *cobra.Command {
	all := e.programs()
	return all[slices.IndexFunc(all, func(p *cobra.Command) bool { return p.Name() != c.Root().Name() })]
}

// misplaced suggests where the command arg exists: elsewhere in this program, or in the other program. The hint is
// empty if it exists nowhere.
func (e Env) misplaced(c *cobra.Command, arg string) string {
	root, other := c.Root(), e.otherProgram(c)
	if arg == other.Name() {
		return fmt.Sprintf("; %s is a program of its own: %s --help", arg, arg)
	}
	for _, parent := range []*cobra.Command{root, other} {
		for _, sub := range parent.Commands() {
			if sub.Name() == arg && !sub.Hidden {
				return fmt.Sprintf("; did you mean %s %s?", parent.Name(), arg)
			}
		}
	}
	return ""
}

// unknownFlags reports all unknown flags. The library was told to skip them, so this function parses the arguments
// again. This time the library stops at an unknown flag, and parsing continues with the argument after it. No value
// is set.
func (e Env) unknownFlags(o *options, c *cobra.Command) {
	args := e.Args
	f := c.Flags()
	var good []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			good = append(good, flag.Name)
		}
	})
	f.ParseErrorsAllowlist.UnknownFlags = false
	var unknown *pflag.NotExistError
	for errors.As(f.ParseAll(args, func(*pflag.Flag, string) error { return nil }), &unknown) {
		name, letters := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
		if letters != "" {
			name = name[1:]
		}
		at := slices.IndexFunc(args, func(arg string) bool {
			flag, _, _ := strings.Cut(arg, "=")
			return flag == name || letters != "" && strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, letters)
		})
		o.Mistake("", "%s: no such flag%s", name, e.unknownFlag(c, args[at], good))
		args = args[at+1:]
	}
}

// misspelt reports environment variables whose names are nearly those of flags. It ignores other unknown variables: a
// script may use them, or Kubernetes may set them for a service called hammerlock.
func (e Env) misspelt(o *options) {
	if o.Flags.Lookup(settings.FileFlag) == nil {
		return // the command reads no variables
	}
	var known []string
	for _, v := range e.Environ {
		variable, value, _ := strings.Cut(v, "=")
		name, is := strings.CutPrefix(variable, settings.EnvironmentPrefix)
		if !is || value == "" || slices.Contains(ownVariables, variable) {
			continue
		}
		if known == nil {
			for _, p := range e.programs() {
				known = append(known, variablesOf(p)...)
			}
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

// ownVariables lists the environment variables that the suite sets for its child processes, which may call the suite.
// They are not reported as misspelt.
var ownVariables = []string{"HAMMERLOCK_CLOCK", "HAMMERLOCK_ENDS", "HAMMERLOCK_SYNCED"}
