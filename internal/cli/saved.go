package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// fileError is what went wrong with a file that was named rightly: a history that cannot be judged, a page that cannot
// be written.
type fileError struct{ err error }

func (f *fileError) Error() string { return f.err.Error() }
func (f *fileError) Unwrap() error { return f.err }

// saved carries out a command that works on saved runs: it needs no plan, so the library reads its flags. Its exit code
// is what stands at code, if nothing went wrong.
func (e Env) saved(ctx context.Context, name string, code *int, all ...*cobra.Command) int {
	root := &cobra.Command{Use: name, SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(all...)
	root.SetArgs(e.Args)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	err := root.ExecuteContext(ctx)
	e.complain(err)
	var file *fileError
	switch {
	case err == nil:
		return *code
	case errors.As(err, &file):
		return Broken
	default:
		return Usage
	}
}
