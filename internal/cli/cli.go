// Package cli is the command line of bench and verify. It turns flags into a plan, events into progress lines, and
// results and errors into output and exit codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"hammerlock/explore"
	"hammerlock/internal/attach"
	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/locks/known"
)

// Env is the part of the process that commands use: arguments, streams and environment. Tests replace it.
type Env struct {
	Args   []string
	Stdin  io.Reader
	Getenv func(string) string // nil = no variable is set
	// Environ has all variables, as NAME=VALUE. Names that are nearly those of flags are reported as misspelt. If
	// Environ is nil, nothing is reported.
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer
	// More has the locks, counters and topologies that another module adds to those of the suite.
	More crew.Catalogue

	secrets   attach.Secrets
	terminals [2]*os.File // terminals behind Stdout and Stderr, for a dashboard; nil = it is no terminal
}

func Bench(ctx context.Context, e Env) int { return e.execute(ctx, Env.benchCommand) }

func Verify(ctx context.Context, e Env) int { return e.execute(ctx, Env.verifyCommand) }

// execute runs the command that the arguments name. If the only argument is a reserved word, this process is a child
// of the suite, and runs workers or an exploration instead.
func (e Env) execute(ctx context.Context, tree func(Env) *cobra.Command) (code int) {
	if len(e.Args) == 1 && e.Args[0] == crew.Command {
		return e.work(ctx)
	}
	if len(e.Args) == 1 && e.Args[0] == explore.Command {
		explore.Child(e.Stdin, e.Stdout, known.Locks) // this ends the process
	}
	// After this, a panic in another goroutine kills the process by a signal. It writes no core dump.
	debug.SetTraceback("crash")
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	defer func() {
		if p := recover(); p != nil {
			e.complain(fmt.Errorf("the suite crashed, please report it: %v\n%s", p, debug.Stack()))
			code = Broken
		}
	}()
	if e.Getenv == nil {
		e.Getenv = func(string) string { return "" }
	}
	e.Args, e.secrets = attach.Take(e.Args, e.Getenv)
	e.terminals[0], _ = e.Stdout.(*os.File)
	e.terminals[1], _ = e.Stderr.(*os.File)
	e.Stdout, e.Stderr = human.Visible(e.Stdout), human.Visible(e.Stderr)
	root := tree(e)
	version := &cobra.Command{Use: "version", Short: "print the version", Args: takes(0, 0)}
	o := newOptions(version, e.benchPlan())
	root.AddCommand(e.manualCommand(), e.explainCommand(),
		e.command(version, o, e.simple(o, func(context.Context, []string) error {
			_, err := fmt.Fprintf(e.Stdout, "%s version %s\n", root.Name(), root.Version) // the same line as --version
			return err
		})))
	e.libraryCommands(root)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { e.complain(e.helpOf(c)) })
	root.Version = harness.Version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	root.SetArgs(append([]string{}, e.Args...)) // with nil, the library would use the arguments of the process
	err := root.ExecuteContext(ctx)
	if code, ok := errors.AsType[ended](err); ok || err == nil {
		return int(code)
	}
	e.complain(err) // errors of the library's own commands, such as "completion"
	return Usage
}

// work is the main function of a worker process. It installs no signal handlers, because the suite ends the process.
func (e Env) work(ctx context.Context) int {
	err := crew.Child(ctx, e.Stdin, e.Stdout, e.knows())
	e.complain(err)
	if err != nil {
		return Broken
	}
	return Passed
}

// ended is the exit code of a command, as an error. The command has already written its output.
type ended int

func (x ended) Error() string { return "exit code " + strconv.Itoa(int(x)) }

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
		o.unknownFlags(c, e.Args)
		if err := arguments(c, args); err != nil {
			o.Mistake("", "%v", err)
		}
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
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return fmt.Errorf("missing argument: %s; see %s --help", c.UseLine(), c.CommandPath())
		}
		names := below(c)
		var errs []error
		for i := most; i < len(args); i++ {
			command := misplaced(c, args[i])
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

// expected returns the end of an error message: a list of the subcommands or, if there are none, a pointer to the
// help.
func expected(c *cobra.Command) string {
	if names := below(c); len(names) > 0 {
		return "; the commands are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("; see %s --help", c.CommandPath())
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

func (e Env) manualCommand() *cobra.Command {
	c := &cobra.Command{Use: "man DIR", Short: "write the manual pages to a directory", Args: takes(1, 1)}
	o := newOptions(c, harness.Plan{})
	return e.command(c, o, e.simple(o, func(_ context.Context, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		c.Root().DisableAutoGenTag = true
		return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "Hammerlock " + harness.Version(),
			Manual: "Hammerlock"}, args[0])
	}))
}
