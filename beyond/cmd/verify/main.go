// Command verify is the command "verify" of the main module with the catalogue of package beyond: see docs/BEYOND.md.
package main

import (
	"context"
	"os"

	"hammerlock/beyond"
	"hammerlock/internal/cli"
)

func main() {
	os.Exit(cli.Verify(context.Background(), cli.Env{
		Args: cli.Arguments(os.Args[1:]), Stdin: os.Stdin, Getenv: cli.Environment(), Stdout: os.Stdout,
		Stderr: os.Stderr, Environ: os.Environ(),
		More: beyond.Catalogue,
	}))
}
