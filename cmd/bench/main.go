// Command bench: see the README, or bench --help.
package main

import (
	"context"
	"os"

	"hammerlock/internal/cli"
)

func main() {
	os.Exit(cli.Bench(context.Background(), cli.Env{
		Args: cli.Arguments(os.Args[1:]), Stdin: os.Stdin, Getenv: cli.Environment(), Stdout: os.Stdout,
		Stderr: os.Stderr, Environ: os.Environ(),
	}))
}
