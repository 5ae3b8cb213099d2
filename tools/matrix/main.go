// Command matrix runs the matrix of verify with several seeds, and keeps what came of it:
// results/baselines/matrix.json, which docs/MATRIX.md shows. A matrix that is red is not kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"hammerlock/tools/kept"
	"hammerlock/topologies"
)

func main() {
	seeds := flag.String("seeds", "1 2", "one matrix for each, separated by spaces")
	only := flag.String("locks", "", "these locks alone, separated by commas; what is known of the others stays")
	flag.Parse()
	if err := measure(context.Background(), strings.Fields(*seeds), *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, seeds []string, only string) error {
	dir, err := os.MkdirTemp("", "matrix-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	verify, errVerify := kept.BuildVerify(ctx, dir)
	server, errServer := topologies.FindServer(ctx, "")
	made, errMade := kept.Now(ctx)
	if err := errors.Join(errVerify, errServer, errMade); err != nil {
		return err
	}
	m := kept.Matrix{Made: made, Server: server.String()}
	for _, seed := range seeds {
		args := []string{"matrix", "--seed", seed, "--out", dir}
		if only != "" {
			args = append(args, "--lock", only)
		}
		fmt.Println("verify", strings.Join(args[:len(args)-2], " "))
		var text json.RawMessage
		if _, err := kept.Ask(ctx, verify, args, &text); err != nil {
			return err
		}
		if err := m.Put(text); err != nil {
			return fmt.Errorf("seed %s: %w", seed, err)
		}
	}
	return m.Keep()
}
