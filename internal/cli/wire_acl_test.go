package cli

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// aclLine is the line in docs/WIRE.md that makes a user for the tap.
var aclLine = regexp.MustCompile(`(?m)^    (ACL SETUSER .*)$`)

// TestLiveTapNeedsLittle: the rights that docs/WIRE.md lists suffice to read a replication stream. They do not allow
// reading or writing keys. If one of the rights is missing, the watch reports an error.
func TestLiveTapNeedsLittle(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	found := aclLine.FindSubmatch(document)
	if found == nil {
		t.Fatal("docs/WIRE.md has no ACL SETUSER")
	}
	words := strings.Fields(string(found[1]))
	a := testbed.Up(t, "single", topologies.Options{}).Sites[0].Access()
	c := topologies.Access{Addrs: a.Addrs, Password: a.Password}.Site().Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	set := func(without string) {
		args := []any{"ACL", "SETUSER", words[2], "reset"}
		for _, w := range words[3:] {
			if w != without {
				args = append(args, w)
			}
		}
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	watch := func(ctx context.Context) (code int, said string) {
		var stdout, stderr lockedBuffer
		code = Verify(ctx,
			Env{Args: []string{"wire", "--addr", "redis://" + words[2] + ":secret@" + a.Addrs[0], "--locks", "lock:*",
				"--tap-only", "--duration", "3s",
				"--out", t.TempDir(), "--tui", "off"}, Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
		return code, stdout.String() + stderr.String()
	}
	for _, w := range words {
		if strings.HasPrefix(w, "+") {
			set(w)
			if code, said := watch(t.Context()); code != Broken ||
				!strings.Contains(said, "ACL SETUSER "+words[2]+" +psync +replconf +info +time") {
				t.Errorf("without %s: exit %d:\n%s", w, code, said)
			}
		}
	}
	set("")
	for _, command := range [][]any{{"GET", "lock:a"}, {"SET", "lock:a", "x"}, {"KEYS", "*"}, {"DEBUG", "SLEEP", "0"}} {
		if err := c.Do(t.Context(), append([]any{"ACL", "DRYRUN", words[2]}, command...)...); err.Val() == "OK" {
			t.Errorf("the user may send %v", command)
		}
	}
	code, said := visitedMeanwhile(t, c, watch)
	if code != Passed || !regexp.MustCompile(`lock:\*: [1-9][\d ]* grants`).MatchString(said) {
		t.Errorf("exit %d:\n%s", code, said)
	}
}

// TestLiveProxyOfAReplica: a proxy in front of a replica tells the user the address of the primary. If no replication
// stream is read, the right to the command TIME is not needed.
func TestLiveProxyOfAReplica(t *testing.T) {
	t.Parallel()
	a := testbed.Up(t, "single", topologies.Options{}).Sites[0].Access()
	c := topologies.Access{Addrs: a.Addrs, Password: a.Password}.Site().Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	for _, args := range [][]any{{"ACL", "SETUSER", "u", "on", ">secret", "~*", "+@all", "-time"},
		{"REPLICAOF", "127.0.0.1", "1"}} {
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var said lockedBuffer
	code := Verify(t.Context(), Env{Args: []string{"wire", "--addr", "redis://u:secret@" + a.Addrs[0], "--locks",
		"lock:*", "--tap", "off", "--duration", "10ms", "--out", t.TempDir(), "--tui", "off"}, Stdout: &said,
		Stderr: &said, Getenv: os.Getenv})
	if code != Inconclusive || !strings.Contains(said.String(), "it is a replica, which grants no locks: name its "+
		"primary, 127.0.0.1:1\n") {
		t.Errorf("exit %d:\n%s", code, said.String())
	}
}

// visitedMeanwhile runs a watch while a lock is granted and released repeatedly.
func visitedMeanwhile(t *testing.T, c redis.UniversalClient, watch func(context.Context) (int, string)) (code int,
	said string) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		code, said = watch(t.Context())
	}()
	live.Wait(t, "the end of the watch", func() bool {
		c.SetNX(t.Context(), "lock:a", "1", time.Minute)
		c.Del(t.Context(), "lock:a")
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	return code, said
}
