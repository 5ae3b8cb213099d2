package cli

import (
	"context"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
)

// matrixCommand says what became of a command that was there once.
func (e Env) matrixCommand() *cobra.Command {
	c := &cobra.Command{Use: "matrix", Hidden: true, Short: "now verify --lock all --expect", DisableFlagParsing: true,
		Args: cobra.ArbitraryArgs}
	o := newOptions(c, harness.Default())
	return e.command(c, o, func(ctx context.Context, _ []string) int {
		o.mistakes = nil
		return e.refuse(ctx, o, usage("matrix: it is verify --lock all --expect now, or --lock a,b --topology T --expect; "+
			"with a fault of your own: verify --lock a,b --fault F"))
	})
}
