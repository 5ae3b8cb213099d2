package witness

import (
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// unseens are histories in which an unseen command changed a lock. None of them accuses the lock.
var unseens = map[string][]string{
	"a pipeline that was passed on unseen": {
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "P 10",
		"! 150 DEL lock:1", "& 150 SET lock:1 b PXAT +250", "! 260 DEL lock:1", "& 260 SET lock:1 c PXAT +360",
		"! 370 DEL lock:1", "& 370 SET lock:1 d PXAT +470"},
	"its DEL of another's lock": {
		"P 1", "A 2 3 SET lock:1 a NX PX 100 = OK", "! 4 SET lock:1 a PXAT +102", "! 10 DEL lock:1",
		"B 20 21 SET lock:1 b NX PX 100 = OK", "! 22 SET lock:1 b PXAT +120"},
	"its SET over another's lock": {
		"P 1", "A 2 3 SET lock:1 a NX PX 100 = OK", "! 4 SET lock:1 a PXAT +102", "! 10 SET lock:1 x PXAT +110"},
	"a client past the proxy that overwrites a lock": {
		"A 2 3 SET lock:1 a NX PX 100 = OK", "! 4 SET lock:1 a PXAT +102", "! 10 SET lock:1 x PXAT +110"},
	"a client past the proxy that shortens a lease": {
		"A 2 3 SET lock:1 a NX PX 100 = OK", "! 4 SET lock:1 a PXAT +102", "! 5 PEXPIREAT lock:1 +10",
		"B 20 21 SET lock:1 b NX PX 100 = OK", "! 22 DEL lock:1", "& 22 SET lock:1 b PXAT +120"},
	"no stream beside it": {
		"T 1 0 lost", "P 2", "A 3 4 0 SET lock:1 a NX PX 100 = OK", "B 20 21 0 SET lock:1 b NX PX 100 = OK"},
	"a stream that ends behind it": {
		"P 2", "T 2.5 0 lost", "A 3 4 0 SET lock:1 a NX PX 100 = OK", "B 20 21 0 SET lock:1 b NX PX 100 = OK"},
}

func TestUnseenCommands(t *testing.T) {
	for name, lines := range unseens {
		_, h := told(t, Options{}, lines...)
		if causes := failed(t, h); len(causes) > 0 {
			t.Errorf("%s: %v", name, causes)
		}
		if !slices.ContainsFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Incident }) {
			t.Errorf("%s: no incident tells of it", name)
		}
	}
	// The server's stream shows everything about a lock that such a connection did not touch.
	_, h := told(t, Options{}, "P 1", "A 2 3 SET lock:1 a NX PX 100 = OK", "! 4 SET lock:1 a PXAT +102",
		"B 20 21 SET lock:1 b PX 100 = OK", "! 22 SET lock:1 b PXAT +120")
	if causes := failed(t, h); !slices.Contains(causes, "exclusion: double-grant") {
		t.Errorf("a lock that was overwritten: %q", causes)
	}
}

// TestAFlushIsSeen: FLUSHDB through the proxy ends every hold, and is the command that did it.
func TestAFlushIsSeen(t *testing.T) {
	_, h := told(t, Options{}, "A 1 2 SET lock:1 a NX PX 1000 = OK", "! 3 SET lock:1 a PXAT +1001",
		"B 10 11 FLUSHDB = OK", "! 12 FLUSHDB", "C 20 21 SET lock:1 c NX PX 1000 = OK", "! 22 SET lock:1 c PXAT +1020",
		"A 30 31 "+remove+" a = 0", "C 40 41 "+remove+" c = 1", "! 42 DEL lock:1")
	if causes := failed(t, h); !slices.Contains(causes, "exclusion: foreign-release") {
		t.Errorf("got %q", causes)
	}
	if slices.ContainsFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Incident }) {
		t.Error("an incident stands for the command")
	}
}

// TestLocksAdrift: a lock that is held when its server begins another history is counted. One that was free is not.
func TestLocksAdrift(t *testing.T) {
	r, _ := told(t, Options{Alone: true}, "! 3 SET lock:1 a PXAT +1001", "! 4 SET lock:2 b PXAT +1001",
		"! 5 DEL lock:2", "! 60 SET lock:3 c PXAT +1060", "! 61 DEL lock:3")
	r.Event(wire.Event{Kind: wire.TapLost, At: time.Second})
	r.Event(wire.Event{Kind: wire.TapBegan, At: 2 * time.Second, Missing: true, Another: true})
	if r.Adrift != 1 {
		t.Errorf("%d locks are adrift, want 1", r.Adrift)
	}
}

// TestWordsAlone: without a stream, what the text of a script does not show is unknown. No right lock is accused.
func TestWordsAlone(t *testing.T) {
	for name, lines := range map[string][]string{
		"levels": {"A 1 2 0 " + enter + " token-a = nil", "A 3 4 0 " + enter + " token-a = nil",
			"A 5 6 0 " + leave + " token-a = 0", "B 7 8 0 " + enter + " token-b = 2994",
			"A 9 10 0 " + leave + " token-a = 1", "B 11 12 0 " + enter + " token-b = nil"},
		"permits": {"A 1 2 0 " + permit + " token-a 2000 2 = 1", "B 3 4 0 " + permit + " token-b 2000 2 = 1",
			"A 20 21 0 ZREM lock:1 token-a = 1", "B 30 31 0 ZREM lock:1 token-b = 1"},
		"two numbers": {
			"A 1 2 0 EVAL return(redis.call('set',KEYS[1],ARGV[1],'NX','EX')) 1 lock:1 token-a 3 5 = OK",
			"A 30 31 0 " + remove + " token-a = 1"},
		"a lease in the text": {
			"A 1 2 0 EVAL return(redis.call('set',KEYS[1],ARGV[1],'NX','PX',500)) 1 lock:1 token-a = OK",
			"A 30 31 0 " + remove + " token-a = 1"},
	} {
		_, h := told(t, Options{}, append([]string{"T 0.5 0 lost"}, lines...)...)
		if causes := failed(t, h); len(causes) > 0 {
			t.Errorf("%s: %v", name, causes)
		}
		if got := heard(h, "token-a", "token-b"); len(got) < 2 {
			t.Errorf("%s: only %q was read", name, got)
		}
	}
}

// TestLeases: a lease counts from its execution, which was before its effect was read.
func TestLeases(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  time.Duration
	}{
		"answered": {
			[]string{"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101"}, 100 * time.Millisecond},
		"answered long after its effect": {
			[]string{"A 1 5000 SET lock:1 a NX PX 100 = OK", "! 300 SET lock:1 a PXAT +400"}, 100 * time.Millisecond},
		"never answered": {
			[]string{"A 1 5000 SET lock:1 a NX PX 100 = lost", "! 300 SET lock:1 a PXAT +400"}, 100 * time.Millisecond},
		"of unknown length, never answered": {
			[]string{"A 1 5000 EVAL s 1 lock:1 a = lost", "! 300 SET lock:1 a PXAT +400"}, 99 * time.Millisecond},
		"of unknown length": {
			[]string{"A 1 200 EVAL s 1 lock:1 a = 1", "! 300 SET lock:1 a PXAT +400"}, 199 * time.Millisecond},
		"of an unseen client": {
			[]string{"A 1 2 SET lock:1 a NX PX 100 = nil", "! 300 SET lock:1 x PXAT +400"}, 99 * time.Millisecond},
	} {
		_, h := told(t, Options{}, c.lines...)
		n := slices.IndexFunc(h.Ops, func(op history.Op) bool {
			return op.Kind == history.Acquire && op.Outcome != history.Failed
		})
		if n < 0 || h.Ops[n].TTL != c.want {
			t.Errorf("%s: %v, want a lease of %v", name, h.Ops[max(n, 0)], c.want)
		}
	}
}

// TestKeysThatScriptsMake: if a script makes the name of a key, no command names the lock. Its effects are grants and
// releases all the same.
func TestKeysThatScriptsMake(t *testing.T) {
	take := []string{"A 1 2 EVALSHA s 0 a = 1", "! 2 SET lock:1 a PXAT +100"}
	r, h := told(t, Options{}, append(take, "A 48 51 EVALSHA s 0 a = 1", "! 50 DEL lock:1")...)
	if causes := failed(t, h); r.Grants != 1 || r.Releases != 1 || len(causes) > 0 {
		t.Errorf("%d grants, %d releases, %q", r.Grants, r.Releases, causes)
	}
	_, h = told(t, Options{}, append(take, "! 50 SET lock:1 b PXAT +150")...)
	if !slices.Contains(failed(t, h), "exclusion: double-grant") {
		t.Error("a lock that a script overwrites is not accused")
	}
}

// TestAGrantOfAnUnseenClientIsNarrow: a grant was executed after all effects that were read before it, on any lock.
// Without this bound, its client would look as if it had asked for a long time and had not got a free lock.
func TestAGrantOfAnUnseenClientIsNarrow(t *testing.T) {
	_, h := told(t, Options{}, "A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101",
		"A 4 5 EVAL s 1 lock:1 a = 1", "! 5 DEL lock:1",
		"A 5000 5001 SET lock:2 b NX PX 100 = OK", "! 5002 SET lock:2 b PXAT +5100", "! 5050 SET lock:1 x PXAT +5150",
		"A 5060 5061 SET lock:1 c NX PX 100 = nil", "! 5062 SET lock:2 z PXAT +5160")
	n := slices.IndexFunc(h.Ops, func(op history.Op) bool {
		return op.Kind == history.Acquire && op.Return == 5050*time.Millisecond
	})
	if n < 0 || h.Ops[n].Call != 5000*time.Millisecond {
		t.Errorf("%v, want a grant between 5 s and 5.05 s", h.Ops)
	}
}
