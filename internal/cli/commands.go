package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

// command is a command with its flags, and what it does when they are read. A mistake is one of all: nobody reads
// flags but options.parse.
type command struct {
	*cobra.Command
	o *options
	// takes says what the arguments are; empty if there are none.
	takes string
	run   func(ctx context.Context, c *command, args []string) int
}

// dispatch starts the subcommand that the first argument names, or else the first command.
func (e Env) dispatch(ctx context.Context, all []*command) int {
	if len(e.Args) == 1 && e.Args[0] == crew.Command {
		return e.work(ctx)
	}
	root := all[0]
	root.Version = harness.Version()
	for _, c := range all {
		c.SetOut(e.Stdout)
		c.SetErr(e.Stderr)
		c.SilenceErrors, c.SilenceUsage = true, true
		c.InitDefaultHelpFlag()
		c.Run = func(*cobra.Command, []string) {} // start runs it; without any the library takes it for a heading
		if c != root {
			root.AddCommand(c.Command)
		}
	}
	root.InitDefaultVersionFlag()
	if len(e.Args) > 0 {
		switch e.Args[0] {
		case "completion", "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return e.tree(ctx, root.Command)
		case "man":
			return e.manual(root.Command)
		case "run":
			return e.start(ctx, root, e.Args[1:])
		}
		for _, c := range all[1:] {
			if c.Name() == e.Args[0] {
				return e.start(ctx, c, e.Args[1:])
			}
		}
	}
	return e.start(ctx, root, e.Args)
}

// tree lets the library carry out what it brings along: completion and help.
func (e Env) tree(ctx context.Context, root *cobra.Command) int {
	root.SetArgs(e.Args)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(e.Stderr, "error:", err)
		return Usage
	}
	return Passed
}

// start reads the flags of a command and runs it.
func (e Env) start(ctx context.Context, c *command, args []string) int {
	rest := c.o.parse(c.Flags(), args)
	for flag, show := range map[string]func() error{
		"help":    c.Help,
		"version": func() error { _, err := fmt.Fprintln(e.Stdout, c.Root().Name(), c.Root().Version); return err },
		"list":    func() error { return writeList(e.Stdout) },
	} {
		if f := c.Flags().Lookup(flag); f != nil && f.Changed {
			if show() != nil {
				return Broken
			}
			return Passed
		}
	}
	if c.takes == "" {
		for _, arg := range rest {
			c.o.mistake("%q: an argument that nobody asked for", arg)
		}
	}
	return c.run(ctx, c, rest)
}

// refuse answers mistakes of a command that carries out no runs of its own.
func (e Env) refuse(o *options, code int, lines ...string) int {
	for _, line := range lines {
		_, _ = fmt.Fprintln(e.Stderr, "error:", line)
	}
	if o.json {
		x := Exit{Code: code}
		if len(lines) > 0 {
			x.Reason = lines[0]
		}
		_ = e.document(Document{Schema: schema, Exit: x, Runs: []results.Run{}})
	}
	return code
}

// gateFlag declares --gate.
func (o *options) gateFlag(f *pflag.FlagSet, usage string, set func(string) error) {
	o.add(f, "gate", "expr", "", usage, set)
}

// given tells whether a flag was given.
func given(f *pflag.FlagSet, name string) bool {
	flag := f.Lookup(name)
	return flag != nil && flag.Changed
}
