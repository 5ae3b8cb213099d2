// Command verify: see the README, or verify --help.
package main

import (
	"context"
	"os"

	"hammerlock/internal/cli"
)

func main() {
	os.Exit(cli.Verify(context.Background(), cli.Env{
		Args: cli.Arguments(os.Args[1:]), Stdin: os.Stdin, Getenv: cli.Environment(), Stdout: os.Stdout,
		Stderr: os.Stderr, Environ: os.Environ(),
	}))
}
