package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"hammerlock/history"
)

// visits are visits to one page of a service, each by another worker; told 0 is an answer without a count.
type visits []struct {
	call, ret time.Duration
	told      int64
	outcome   history.Outcome
}

func (all visits) history(final int64) *builder {
	s := newBuilder()
	for i, v := range all {
		s.add(history.Op{
			Kind: history.Store, Outcome: v.outcome, Worker: int32(i), Call: v.call, Return: v.ret, Value: v.told,
		})
	}
	if final >= 0 {
		s.final(1000, 0, final)
	}
	s.h.Service, s.h.Workers, s.h.Keys = true, len(all), 1
	return s
}

func TestServices(t *testing.T) {
	const ok, unknown, failed = history.OK, history.Unknown, history.Failed
	for name, c := range map[string]struct {
		visits visits
		final  int64
		want   string // verdicts of lost-updates, duplicates, linearizable
	}{
		"right":                {visits{{1, 4, 1, ok}, {2, 5, 2, ok}, {6, 7, 3, ok}}, 3, "pass, pass, pass"},
		"right without counts": {visits{{1, 4, 0, ok}, {2, 5, 0, ok}}, 2, "pass, not judged, not judged"},
		"lost": {
			visits{{1, 4, 1, ok}, {2, 5, 1, ok}}, 1, "fail lost-update, fail lost-update, fail lost-update",
		},
		"lost, and nothing told": {
			visits{{1, 4, 0, ok}, {2, 5, 0, ok}}, 1, "fail lost-update, not judged, not judged",
		},
		"told twice, and not lost": {
			visits{{1, 4, 2, ok}, {2, 5, 2, ok}}, 2, "pass, fail duplicate, fail duplicate",
		},
		"the later one told less": {visits{{1, 2, 2, ok}, {3, 4, 1, ok}}, 2, "pass, pass, fail order"},
		"more than were sent":     {visits{{1, 4, 1, ok}, {2, 5, 2, ok}}, 3, "fail duplicate, pass, fail gap"},
		"a refused one counted": {
			visits{{1, 4, 1, ok}, {2, 5, 0, failed}, {6, 7, 3, ok}}, 3, "fail duplicate, pass, fail gap",
		},
		"an unknown one fills the gap": {
			visits{{1, 4, 1, ok}, {2, 5, 0, unknown}, {6, 7, 3, ok}}, 3, "pass, pass, pass",
		},
		"it is too late for the gap": {visits{{1, 4, 2, ok}, {6, 7, 0, unknown}}, 2, "pass, pass, fail gap"},
		"it may hide a loss": {
			visits{{1, 4, 0, ok}, {2, 5, 0, unknown}}, 1, "inconclusive, not judged, not judged",
		},
		"the count went back": {
			visits{{1, 4, 1, ok}, {2, 5, 2, ok}, {3, 6, 3, ok}}, 2, "fail lost-update, pass, fail backwards",
		},
		"behind the beginning": {visits{{1, 4, -3, ok}}, 1, "pass, pass, fail backwards"},
		"not read":             {visits{{1, 4, 1, ok}}, -1, "inconclusive, pass, pass"},
		"nothing acknowledged": {visits{{1, 4, 0, unknown}}, 0, "inconclusive, not judged, not judged"},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts, err := Judge(c.visits.history(c.final).prepared())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range verdicts[1:4] {
				got = append(got, strings.TrimSpace(v.Status.String()+" "+v.Cause))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// down are two visits that a service answered, and two without an answer.
var down = visits{
	{1, 4, 1, history.OK}, {2, 5, 2, history.OK}, {60, 110, 0, history.Unknown}, {61, 111, 0, history.Unknown},
}

// servicePrograms are visits to a service, and the verdict on its programs. Times are ms.
var servicePrograms = map[string]struct {
	visits   visits
	programs int
	ended    []string
	fault    [2]time.Duration // time of a fault; 0 = there is none
	paused   time.Duration    // length of a pause from 70 on
	want     string
	words    string
}{
	"not its programs": {visits: down, want: "not judged"},
	"served to the end": {
		visits:   visits{{1, 4, 1, history.OK}, {2, 95, 0, history.Unknown}, {96, 97, 2, history.OK}},
		programs: 1, want: "pass",
	},
	"ended": {visits: down, programs: 2, ended: []string{"it ended (exit status 7)"},
		want: "fail panic", words: "1 program of the service ended"},
	"down for ever": {
		visits: down, programs: 1, want: "fail stuck", words: "down for the last 106 ms: 2 visits had no answer",
	},
	"down after a fault": {visits: down, programs: 1, fault: [2]time.Duration{6, 55}, want: "fail stuck",
		words: "down for the last 56.0 ms: 2 visits had no answer"},
	"not long after it":    {visits: down, programs: 1, fault: [2]time.Duration{6, 62}, want: "pass"},
	"the fault is at work": {visits: down, programs: 1, fault: [2]time.Duration{6, 0}, want: "pass"},
	"the machine was away": {visits: down, programs: 1, fault: [2]time.Duration{6, 55}, paused: 20, want: "pass"},
	"refused, so it is up": {visits: append(down[:4:4], visits{{112, 113, -1, history.Failed}}...),
		programs: 1, want: "pass"},
	"answers end no visits": {visits: visits{{1, 4, 1, history.OK}}, programs: 1, want: "pass"},
}

// TestServicePrograms: a service fails if a program ends without a fault, or if it answers no visit while nothing is
// broken. It does not fail if that lasts shorter than a visit waits, or during a fault or a pause.
func TestServicePrograms(t *testing.T) {
	const ok = history.OK
	for name, c := range servicePrograms {
		t.Run(name, func(t *testing.T) {
			s := c.visits.history(2)
			for i := range s.h.Ops {
				if op := &s.h.Ops[i]; op.Kind == history.Store && op.Value == -1 {
					op.Value, op.Reason = 0, history.Refused
				}
			}
			s.h.Wait = 50 * time.Millisecond
			s.h.Measured = &history.Measured{Programs: c.programs, Ended: c.ended}
			if c.fault[0] > 0 {
				s.h.Faults = []history.Injection{{Name: "kill-program"}}
				s.add(history.Op{
					Kind: history.Fault, Key: -1, Worker: -1, Call: c.fault[0], Return: c.fault[0], Outcome: ok,
				})
				if c.fault[1] > 0 {
					s.add(history.Op{
						Kind: history.Heal, Key: -1, Worker: -1, Call: c.fault[1], Return: c.fault[1], Outcome: ok,
					})
				}
			}
			if c.paused > 0 {
				s.add(history.Op{Kind: history.Gap, Key: -1, Worker: -1, Call: 70, Return: 70 + c.paused, Outcome: ok})
			}
			verdicts, err := Judge(s.prepared())
			if err != nil {
				t.Fatal(err)
			}
			v := verdicts[len(verdicts)-1]
			if got := strings.TrimSpace(v.Status.String() + " " + v.Cause); v.Checker != "programs" || got != c.want ||
				!strings.Contains(v.Summary, c.words) {
				t.Errorf("got %s: %s: %s, want %s", v.Checker, got, v.Summary, c.want)
			}
		})
	}
}

// TestServiceActivity: visits at the same time are needed, and answers.
func TestServiceActivity(t *testing.T) {
	many := func(n int, gap time.Duration, unknowns int) (all visits) {
		for i := range n {
			all = append(all, visits{{time.Duration(i) * gap, time.Duration(i)*gap + 3, int64(i + 1), history.OK}}...)
			if i < unknowns {
				all[i].told, all[i].outcome = 0, history.Unknown
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		visits visits
		want   Status
		words  string
	}{
		"at once":       {many(30, 1, 0), Pass, "30 of them at the same time"},
		"in turn":       {many(30, 5, 0), Inconclusive, "0 acknowledged visits overlapped"},
		"few":           {many(19, 1, 0), Inconclusive, "19 acknowledged visits overlapped"},
		"mostly silent": {many(60, 1, 20), Inconclusive, "20 of 60 visits may have counted: 20 visits had no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgeVisits(c.visits.history(int64(len(c.visits))).prepared())
			if v.Status != c.want || !strings.Contains(v.Summary, c.words) {
				t.Errorf("got %v: %s", v.Status, v.Summary)
			}
		})
	}
}

// TestServiceTellsStatusesErrorsAndFaults: the verdict names the answers to unknown visits. If a status may mean that
// the service was busy, it names the flag for refusals, with all statuses that are known as refusals. The extent has
// the errors and the faults.
func TestServiceTellsStatusesErrorsAndFaults(t *testing.T) {
	s := visits{
		{1, 4, 0, history.OK}, {2, 5, 409, history.Failed}, {6, 55, 0, history.Unknown}, {6, 7, 500, history.Unknown},
		{6, 8, 503, history.Unknown}, {6, 9, 503, history.Unknown},
	}.history(1)
	for i := range s.h.Ops {
		if op := &s.h.Ops[i]; op.Outcome == history.Failed {
			op.Reason = history.Refused
		} else if op.Outcome == history.Unknown {
			op.Reason = history.Other
		}
	}
	s.h.Faults = []history.Injection{{Name: "kill-program"}}
	s.add(history.Op{Kind: history.Fault, Key: -1, Worker: -1, Call: 5, Return: 5, Outcome: history.OK})
	verdicts, err := Judge(s.prepared())
	if err != nil {
		t.Fatal(err)
	}
	const want = "1 visit had no answer, 1 visit had status 500, 2 visits had status 503 " +
		"(if such visits did not count: --refusal 409,503)"
	for _, v := range verdicts[:2] {
		if !strings.Contains(v.Summary, want) {
			t.Errorf("%s: got %q, want %q", v.Checker, v.Summary, want)
		}
	}
	if x := verdicts[0].Extent; x == nil || !strings.Contains(x.Text(), "errors refused, other; faults kill-program") {
		t.Errorf("got the extent %+v", x)
	}
}

// TestServiceAdvice: the advice on lost views depends on three things: the times of the visits with equal counts, the
// final count, and when a program was killed.
func TestServiceAdvice(t *testing.T) {
	const ok = history.OK
	for name, c := range map[string]struct {
		visits visits
		final  int64
		kill   time.Duration // 0 = none
		want   string
	}{
		"at the same time":         {visits{{1, 4, 1, ok}, {2, 5, 1, ok}}, 1, 0, "Add in one atomic step, or"},
		"nothing counted":          {visits{{1, 4, 0, ok}, {2, 5, 0, ok}}, 0, 0, "The count did not move."},
		"one after the other":      {visits{{1, 4, 1, ok}, {5, 6, 1, ok}}, 1, 0, "look for a cache"},
		"in memory":                {visits{{1, 4, 1, ok}, {7, 8, 1, ok}}, 1, 5, "stored durably"},
		"in memory, and no count":  {visits{{1, 4, 0, ok}, {7, 8, 0, ok}}, 1, 5, "stored durably"},
		"killed too early":         {visits{{3, 4, 0, ok}, {7, 8, 0, ok}}, 1, 2, "Add in one atomic step, or"},
		"at once, and then killed": {visits{{1, 4, 1, ok}, {2, 4, 1, ok}}, 1, 5, "Add in one atomic step, or"},
	} {
		s := c.visits.history(c.final)
		if c.kill > 0 {
			s.h.Faults = []history.Injection{{Name: killProgram}}
			s.add(history.Op{Kind: history.Fault, Key: -1, Worker: -1, Call: c.kill, Return: c.kill, Outcome: ok})
		}
		verdicts, err := Judge(s.prepared())
		if err != nil {
			t.Fatal(err)
		}
		Advise(verdicts)
		for _, v := range verdicts[1:] {
			if v.Cause == history.LostUpdate && !strings.Contains(v.Remedy, c.want) {
				t.Errorf("%s: %s: got %q, want %q", name, v.Checker, v.Remedy, c.want)
			}
		}
		if verdicts[1].Cause != history.LostUpdate {
			t.Errorf("%s: got %v", name, verdicts[1])
		}
	}
}

// TestServiceTellsRefusedVisitsThatCounted apart from those that were never sent.
func TestServiceTellsRefusedVisitsThatCounted(t *testing.T) {
	const ok, failed = history.OK, history.Failed
	s := visits{{1, 4, 0, ok}, {2, 5, 503, failed}, {2, 6, 503, failed}}.history(3)
	for i := range s.h.Ops {
		if op := &s.h.Ops[i]; op.Outcome == failed {
			op.Reason = history.Refused
		}
	}
	const want = "3 page views counted, but only 1 acknowledged, 2 refused: refused visits counted"
	if v := judgeSums(s.prepared()); !strings.HasPrefix(v.Summary, want) {
		t.Errorf("got %q, want %q", v.Summary, want)
	}
}

// TestCountsAreJudgedAsPorcupineDoes compares the checker with porcupine on small whole histories. The final count is
// known. A visit without an answer may count at any time after its call, or not at all.
func TestCountsAreJudgedAsPorcupineDoes(t *testing.T) {
	right, wrong := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "visits")
		times := rapid.Permutation(slices.Collect(upTo(2*n))).Draw(t, "times")
		all := make(visits, n)
		var list []porcupine.Operation
		for i := range all {
			v := &all[i]
			a, b := times[2*i], times[2*i+1]
			v.call, v.ret = time.Duration(min(a, b)), time.Duration(max(a, b))
			v.outcome, v.told = history.OK, int64(rapid.IntRange(1, n).Draw(t, "told"))
			op := porcupine.Operation{ClientId: i, Input: visitInput, Output: v.told, Call: int64(v.call),
				Return: int64(v.ret)}
			if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
				v.outcome, v.told = history.Unknown, 0
				op.Output, op.Return = int64(0), int64(history.Forever)
			}
			list = append(list, op)
		}
		final := int64(rapid.IntRange(0, n).Draw(t, "final"))
		list = append(list, porcupine.Operation{
			ClientId: n, Input: finalInput, Output: final, Call: 1000, Return: 1001,
		})
		want := porcupine.CheckOperations(wholeCounter, list)
		verdict := judgeCounts(all.history(final).prepared())
		if verdict.Status == NotJudged {
			return
		}
		if got := verdict.Status == Pass; got != want {
			t.Fatalf("got %v (%s), porcupine says %v: %+v, final %d", verdict.Status, verdict.Cause, want, all, final)
		}
		if want {
			right++
		} else {
			wrong++
		}
	})
	if !testing.Short() && (right < 3 || wrong < 3) {
		t.Errorf("%d right histories and %d wrong ones were drawn: too few of one kind", right, wrong)
	}
}

// TestManyDuplicatesAreJudgedAtOnce judges a service without a lock that answers many visits at the same time.
func TestManyDuplicatesAreJudgedAtOnce(t *testing.T) {
	var all visits
	for i := range 2000 {
		all = append(all, visits{{time.Duration(i), time.Duration(2000 + i), int64(1 + i/40), history.OK}}...)
	}
	verdicts, err := Judge(all.history(50).prepared())
	if err != nil || verdicts[3].Cause != "lost-update" || verdicts[3].Misses["timeout"] > 0 {
		t.Errorf("got %s, %d timeouts, %v", verdicts[3].Cause, verdicts[3].Misses["timeout"], err)
	}
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

type counterInput string

const (
	visitInput counterInput = "visit"
	finalInput counterInput = "final"
)

// wholeCounter is a counter in which visits without an answer may have no effect.
var wholeCounter = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{int64(0)} },
	Step: func(state, input, output any) []any {
		n, told := state.(int64), output.(int64)
		switch {
		case input == finalInput && told != n:
			return nil
		case input == finalInput:
			return []any{n}
		case told == 0:
			return []any{n, n + 1}
		case told == n+1:
			return []any{told}
		}
		return nil
	},
}).ToModel()

// TestAKillThatMetNoVisit: visits that a dead program refused were not hit by the kill.
func TestAKillThatMetNoVisit(t *testing.T) {
	for name, tt := range map[string]struct {
		visit history.Op
		met   bool
	}{
		"in flight":      {history.Op{Outcome: history.Unknown, Reason: history.Dropped, Call: 495, Return: 502}, true},
		"answered later": {history.Op{Outcome: history.OK, Value: 81, Call: 495, Return: 540}, true},
		"refused": {history.Op{Outcome: history.Failed, Reason: history.Unreachable, Call: 510, Return: 511},
			false},
		"after the restart": {history.Op{Outcome: history.OK, Value: 81, Call: 552, Return: 553}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all visits
			for i := range 40 {
				at := 10 * dur(i)
				all = append(all, visits{{at, at + 5, int64(2*i + 1), history.OK}, {at + 1, at + 6, int64(2*i + 2),
					history.OK}}...)
			}
			s := all.history(80)
			s.h.Workers++
			tt.visit.Kind, tt.visit.Worker = history.Store, int32(len(all))
			s.add(tt.visit)
			s.h.Faults = []history.Injection{{Name: "kill-program"}}
			s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 500, Return: 501})
			s.add(history.Op{Kind: history.Heal, Outcome: history.OK, Worker: -1, Key: -1, Call: 550, Return: 560})
			v := judgeVisits(s.prepared())
			if met := !strings.Contains(v.Summary, "coincided with neither"); met != tt.met ||
				met != slices.Contains(v.Extent.Faults, "kill-program") {
				t.Errorf("met %t, want %t: %s; tried %v", met, tt.met, v.Summary, v.Extent.Faults)
			}
		})
	}
}
