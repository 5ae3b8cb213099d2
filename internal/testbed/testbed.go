// Package testbed brings real servers up for tests, as if somebody else ran them: whoever is tested knows no more of
// them than it is told.
package testbed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hammerlock/topologies"
)

// Up brings a topology up for a test, which fails if there is no server. It goes down with the test.
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

// Command sends a command to a node as its owner does, also when the test is over; it must be carried out.
func Command(t testing.TB, n *topologies.Node, args ...any) any {
	t.Helper()
	reply, err := n.Do(context.WithoutCancel(t.Context()), args...).Result()
	if err != nil {
		// what follows may be a secret
		t.Fatalf("%s: %v", strings.Trim(fmt.Sprint(args[:min(2, len(args))]), "[]"), err)
	}
	return reply
}
