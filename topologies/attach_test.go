package topologies

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// theirs returns a single server, as if another user ran it.
func theirs(t *testing.T) *Node {
	t.Helper()
	return up(t, "single", Options{}).Nodes[0]
}

func attachTo(t *testing.T, n *Node, a Attachment) *Topology {
	t.Helper()
	a.Endpoints = []Endpoint{{Addr: n.Addr(), Login: NewLogin("", n.topology.password)}}
	top, err := a.Of(single).Up(t.Context(), Options{})
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

func set(t *testing.T, n *Node, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := n.Do(t.Context(), "SET", key, "1").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// names lists all keys of a server.
func names(t *testing.T, n *Node) map[string]bool {
	t.Helper()
	list, err := n.Do(context.WithoutCancel(t.Context()), "KEYS", "*").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, name := range list {
		all[name] = true
	}
	return all
}

// TestOnlyTheKeysOfDeadRunsAreRemoved puts into the registry a living and a dead run of another machine, a dead run
// of this machine, and an entry that the suite never wrote.
func TestOnlyTheKeysOfDeadRunsAreRemoved(t *testing.T) {
	t.Parallel()
	n := theirs(t)
	foreign := owner{Host: "elsewhere", Space: "another", PID: 1, Start: "1", Started: "then"}
	gone := me()
	gone.Start = "0"
	for prefix, o := range map[string]owner{"hl:living:": foreign, "hl:dead:": foreign, "hl:gone:": gone,
		"hl:mine:": me(), "other:": gone, "hl:": gone} {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Do(t.Context(), "HSET", "hl:runs", prefix, text).Err(); err != nil {
			t.Fatal(err)
		}
		set(t, n, prefix+"key")
	}
	set(t, n, "hl:living:alive", "hl:gone:alive", "key")
	var said []string
	top := attachTo(t, n, Attachment{Prefix: "hl:", Tell: func(line string) { said = append(said, line) }})
	set(t, n, top.Prefix()+"key")
	if err := top.Close(); err != nil {
		t.Fatal(err)
	}
	left := names(t, n)
	for _, name := range []string{"hl:living:key", "hl:living:alive", "hl:mine:key", "other:key", "hl:key", "key",
		"hl:runs"} {
		if !left[name] {
			t.Errorf("%s was removed", name)
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if top.Settings["removed"] == "" || top.Settings["maxmemory-policy"] != "noeviction" {
		t.Errorf("the record has %v", top.Settings)
	}
	text := strings.Join(said, "\n")
	if len(said) != 2 || !strings.Contains(text, "removed 1 keys under hl:dead:") ||
		!strings.Contains(text, "removed 2 keys under hl:gone:") {
		t.Errorf("said: %s", text)
	}
}

// TestAPrefixIsNoPattern deletes keys under a prefix that looks like a pattern.
func TestAPrefixIsNoPattern(t *testing.T) {
	t.Parallel()
	n := theirs(t)
	const prefix = `h[ab]*?\{x}:`
	set(t, n, prefix+"1", prefix+"2", "hb1{x}:1", "ha?")
	removed, err := sweep(t.Context(), n.control, prefix)
	if err != nil || removed != 2 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if left := names(t, n); !left["hb1{x}:1"] || !left["ha?"] || len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// TestNothingHarmfulIsSent tries commands on the suite's own connection to an attached server.
func TestNothingHarmfulIsSent(t *testing.T) {
	t.Parallel()
	n := theirs(t)
	set(t, n, "theirs")
	careful := attachTo(t, n, Attachment{Prefix: "hl:"})
	allowed := attachTo(t, n, Attachment{Prefix: "hl:", Allow: []string{"client-pause", "flushall"}})
	for _, args := range [][]any{
		{"FLUSHALL"}, {"CLIENT", "PAUSE", 1}, {"CLIENT", "KILL", "TYPE", "pubsub"}, {"SCRIPT", "FLUSH"},
		{"DEBUG", "SLEEP", 0},
		{"CONFIG", "SET", "maxmemory", 0}, {"SHUTDOWN"}, {"GET", "theirs"}, {"DEL", "theirs"}, {"EVAL", "return 1", 0},
		{"KEYS", "*"},
	} {
		if err := careful.Nodes[0].Do(t.Context(), args...).Err(); !errors.Is(err, errNotAllowed) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	_, err := careful.Nodes[0].control.Pipelined(t.Context(),
		func(p redis.Pipeliner) error { return p.FlushAll(t.Context()).Err() })
	if !errors.Is(err, errNotAllowed) {
		t.Errorf("in a pipeline: got %v", err)
	}
	if !names(t, n)["theirs"] {
		t.Fatal("the key of others is gone")
	}
	for _, args := range [][]any{{"GET", allowed.Prefix() + "none"}, {"CLIENT", "PAUSE", 1}, {"FLUSHALL"}} {
		if err := allowed.Nodes[0].Do(t.Context(), args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("%v, allowed: got %v", args, err)
		}
	}
	if err := errors.Join(careful.Nodes[0].Kill(), careful.Nodes[0].Pause(),
		careful.Nodes[0].Start(t.Context())); !errors.Is(err, errForeign) {
		t.Errorf("the process: got %v", err)
	}
	if careful.Nodes[0].State() != Up {
		t.Error("the server is not up")
	}
}
