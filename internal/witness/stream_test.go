package witness

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// played makes a Stream of two servers of one site, the second a replica of the first, and plays a script. "1 offset
// SET ..." is an effect of server 1. An operation has its kind, its hold, its outcome, its token, and its call and
// return in ms.
func played(t *testing.T, lines ...string) *history.Stream {
	t.Helper()
	clock := history.NewOrderedClock(0)
	clock.Set(time.UnixMilli(1_000_000), 0)
	s := NewStream(clock, []string{"lock"}, []string{"n1", "n2"}, []int{0, 0})
	s.Event(wire.Event{Kind: wire.TapBegan, Origin: wire.Origin{History: "one"}})
	s.Event(wire.Event{Kind: wire.TapBegan, Server: 1, Replica: true, Origin: wire.Origin{History: "one"}})
	at := time.Duration(0)
	for _, line := range lines {
		at += time.Millisecond
		var server, offset int
		var hold history.ID
		var kind, outcome, token string
		var call, answer time.Duration
		w := strings.Fields(line)
		switch {
		case w[0] == "lost":
			s.Event(wire.Event{Kind: wire.TapLost, At: at})
		case w[0] == "empty":
			s.Event(wire.Event{
				Kind: wire.TapBegan, At: at, Missing: true, Another: true, Origin: wire.Origin{History: "another"},
			})
		case w[0] == "promoted":
			_, _ = fmt.Sscan(w[1], &offset)
			s.Event(wire.Event{Kind: wire.TapLost, Server: 1, At: at})
			s.Event(wire.Event{
				Kind: wire.TapBegan, Server: 1, At: at,
				Origin: wire.Origin{History: "two", Before: "one", Upto: int64(offset)},
			})
		case w[0] == "acquire" || w[0] == "release" || w[0] == "woken" || w[0] == "extend":
			_, _ = fmt.Sscan(line, &kind, &hold, &outcome, &token, &call, &answer)
			op := history.Op{
				Kind: history.Acquire, ID: hold, Hold: hold, Token: history.Hash(token), Call: call * time.Millisecond,
				Return: answer * time.Millisecond,
			}
			switch kind {
			case "woken":
				op.Woken = history.Signal
			case "release":
				op.Kind, op.ID = history.Release, 1000+hold
			case "extend":
				op.Kind, op.ID, op.TTL = history.Extend, 2000+hold, 20*time.Millisecond
			}
			op.Outcome = map[string]history.Outcome{"ok": history.OK, "failed": history.Failed}[outcome]
			s.Observe(&op)
		default:
			_, _ = fmt.Sscan(line, &server, &offset)
			s.Effect(&wire.Effect{Server: server - 1, At: at, Offset: int64(offset), Args: w[2:]})
		}
	}
	s.Close(time.Minute)
	sum := s.Sum()
	sum.Breaks = nil
	return sum
}

// Parts of scripts: an expiry that does not come, and the effect of a grant to a.
const (
	far = "9000000"
	set = " SET lock a PXAT " + far
)

// streams has scripts, each with the result of the comparison.
var streams = map[string]struct {
	lines []string
	want  history.Stream
}{
	"agrees": {[]string{"1 10" + set, "2 10" + set, "1 20 DEL lock", "2 20 DEL lock", "acquire 1 ok a 0 2",
		"release 1 ok a 2 4"},
		history.Stream{Effects: 4, Compared: 2}},
	"a grant that no server made": {[]string{"1 10" + set, "acquire 1 ok a 0 2", "acquire 2 ok b 5 6"},
		history.Stream{
			Effects: 1, Compared: 2, Against: []string{"the acquire of w00 at 0.005000 s was answered, " +
				"and no stream has its effect"},
		}},
	"the holder before had handed it over": {
		[]string{"1 10" + set, "acquire 1 ok a 5 6"}, history.Stream{Effects: 1, Compared: 1},
	},
	"it is handed on within a process": {[]string{"1 10" + set, "acquire 1 ok a 0 1", "woken 2 ok b 3 4"},
		history.Stream{Effects: 1}},
	"a replica that is late": {
		[]string{"1 10" + set, "2 10" + set, "1 20 DEL lock", "acquire 1 ok a 0 2", "release 1 ok a 2 4"},
		history.Stream{Effects: 3, Compared: 2},
	},
	"a release that left the lock": {[]string{"1 10" + set, "acquire 1 ok a 0 2", "release 1 ok a 3 4"},
		history.Stream{
			Effects: 1, Compared: 2, Against: []string{"the release of w00 at 0.003000 s was answered, " +
				"and no stream has its effect"},
		}},
	"without an answer": {[]string{"1 10" + set, "acquire 1 ok a 0 2", "1 20 DEL lock", "release 1 unknown a 1 3",
		"1 30 SET lock b PXAT " + far,
		"acquire 2 unknown b 2 9", "acquire 3 unknown c 2 9", "release 2 unknown b 9 10"},
		history.Stream{Effects: 3, Compared: 1, Grants: history.Settled{Unknown: 2, Executed: 1, Without: 1},
			Releases: history.Settled{Unknown: 2, Executed: 1, Without: 1}}},
	"another's command ended it early": {
		[]string{"1 10" + set, "2 10" + set, "1 20 DEL lock", "2 20 DEL lock", "1 30 SET lock b PXAT " + far,
			"acquire 1 ok a 0 2", "release 1 failed a 9 10", "acquire 2 ok b 5 6"},
		history.Stream{Effects: 5, Compared: 2, Early: []history.EarlyEnd{{
			Node: "n1", Token: history.Hash("a"), At: 3 * time.Millisecond, By: "DEL", Next: history.Hash("b")}}}},
	"another's grant replaced it": {
		[]string{"1 10" + set, "1 20 SET lock b PXAT " + far, "acquire 1 ok a 0 2", "acquire 2 ok b 1 3"},
		history.Stream{Effects: 2, Compared: 2, Early: []history.EarlyEnd{{
			Node: "n1", Token: history.Hash("a"), At: 2 * time.Millisecond, By: "SET", Next: history.Hash("b")}}}},
	"an extension that made nothing longer": {
		[]string{"1 10 SET lock a PXAT 1000005", "acquire 1 ok a 0 2", "extend 1 ok a 3 4", "acquire 3 failed c 4 5",
			"acquire 3 failed c 4 5", "1 20 DEL lock", "1 30 SET lock b PXAT " + far, "acquire 2 ok b 6 7"},
		history.Stream{Effects: 3, Compared: 2, Early: []history.EarlyEnd{{Node: "n1", Token: history.Hash("a"),
			At: 6 * time.Millisecond, By: history.Expiry, Next: history.Hash("b"), Extended: true}}}},
	"renewed in two steps": {
		[]string{"1 10" + set, "1 20 DEL lock", "1 30" + set, "acquire 1 ok a 0 2"},
		history.Stream{Effects: 3, Compared: 1}},
	"refused counts for nothing": {[]string{"1 10" + set, "acquire 1 ok a 0 2", "acquire 2 failed z 3 4"},
		history.Stream{Effects: 1, Compared: 1}},
	"nothing is compared while a server was away": {[]string{"1 10" + set, "acquire 1 ok a 0 1", "lost", "empty",
		"acquire 2 ok b 2 4", "acquire 3 unknown c 3 9",
		"acquire 4 ok d 5000 5001"},
		history.Stream{
			Effects: 1, Compared: 1, Grants: history.Settled{Unknown: 1},
			Against: []string{"the acquire of w00 at 5.000000 s was answered, and no stream has its effect"},
		}},
	"a failover that forgets": {[]string{
		"1 10" + set, "2 10" + set, "1 20 DEL lock", "1 30 SET lock b PXAT " + far, "promoted 15",
	},
		history.Stream{
			Effects: 4, Forgot: []history.Takeover{
				{Node: "n2", Before: "n1", At: 5 * time.Millisecond, Upto: 15, Last: 30, Grants: 1, Released: 1},
			},
		}},
	"one that knows all": {[]string{"1 10" + set, "2 10" + set, "promoted 10"},
		history.Stream{
			Effects: 2, Forgot: []history.Takeover{{Node: "n2", Before: "n1", At: 3 * time.Millisecond, Upto: 10}},
		}},
	"a lock whose tokens stand elsewhere": {
		[]string{"1 10 SET lock 1", "acquire 1 ok a 0 2"}, history.Stream{Effects: 1},
	},
}

func TestStream(t *testing.T) {
	for name, c := range streams {
		if got := played(t, c.lines...); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, c.want)
		}
	}
}

// TestAMinority: a grant that two of five sites have made is listed, and one that three have made is not.
func TestAMinority(t *testing.T) {
	clock := history.NewOrderedClock(0)
	s := NewStream(clock, []string{"lock"}, []string{"n1", "n2", "n3", "n4", "n5"}, []int{0, 1, 2, 3, 4})
	for server := range 5 {
		s.Event(wire.Event{Kind: wire.TapBegan, Server: server, Origin: wire.Origin{History: "one"}})
		token := "a"
		if server > 2 {
			token = "b"
		}
		s.Effect(&wire.Effect{Server: server, At: time.Duration(server + 1), Args: []string{"SET", "lock", token}})
	}
	for id, token := range []string{"a", "b"} {
		s.Observe(&history.Op{Kind: history.Acquire, Outcome: history.OK, ID: history.ID(id + 1),
			Hold: history.ID(id + 1), Token: history.Hash(token), Return: 9})
	}
	s.Close(time.Minute)
	if got := s.Sum().Minority; len(got) != 1 || got[0] != (history.Minority{Token: history.Hash("b"), Sites: 2}) {
		t.Errorf("got %v", got)
	}
}
