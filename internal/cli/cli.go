// Package cli is the command line of bench and verify. It turns flags into a plan, events into progress lines, and
// results and errors into output and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"hammerlock/explore"
	"hammerlock/internal/attach"
	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/locks/known"
)

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
	e.programs = func() []*cobra.Command { return []*cobra.Command{e.benchCommand(), e.verifyCommand()} }
	root := tree(e)
	version := &cobra.Command{Use: "version", Short: "print the version", Args: e.takes(0, 0)}
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

func (e Env) manualCommand() *cobra.Command {
	c := &cobra.Command{Use: "man DIR", Short: "write the manual pages to a directory", Args: e.takes(1, 1)}
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
