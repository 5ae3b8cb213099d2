// Package testbed starts real servers for tests, as an operator would. The tested code knows only the options that it
// gets.
package testbed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hammerlock/topologies"
)

// Up starts a topology for a test, and stops it at the end. The test fails if there is no server.
func Up(t testing.TB, kind string, o topologies.Options) *topologies.Topology {
	t.Helper()
	spec, ok := topologies.Find(kind)
	if !ok {
		t.Fatalf("no topology %s", kind)
	}
	if o.Server.Path == "" {
		server, err := topologies.FindServer(t.Context(), "")
		if err != nil {
			t.Fatalf("%v; to install one: %s", err, topologies.InstallHint())
		}
		o.Server = server
	}
	top, err := spec.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := top.Close(); err != nil {
			t.Error(err)
		}
	})
	return top
}

// Command sends a command to a node, even after the test's end. The test fails on an error.
func Command(t testing.TB, n *topologies.Node, args ...any) any {
	t.Helper()
	reply, err := n.Do(context.WithoutCancel(t.Context()), args...).Result()
	if err != nil {
		// the further arguments may be secret
		t.Fatalf("%s: %v", strings.Trim(fmt.Sprint(args[:min(2, len(args))]), "[]"), err)
	}
	return reply
}
