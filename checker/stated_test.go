package checker

import (
	"slices"
	"testing"

	"hammerlock/history"
)

// TestALockThatEndsItsRunFails: the evidence is the last operation before.
func TestALockThatEndsItsRunFails(t *testing.T) {
	before := []history.Op{{Worker: 1}, {Worker: 2}}
	for name, test := range map[string]struct {
		got                     Verdict
		checker, cause, summary string
		story                   []string
	}{
		"a panic": {BrokeDown(&history.Breakdown{Text: "it panics\nat a line"}, before),
			"panic", "panic", "it panics", []string{"it panics", "at a line"}},
		"a process": {BrokeDown(&history.Breakdown{Text: "it ends", Said: []string{"oh"}}, before),
			"panic", "panic", "it ends", []string{"oh"}},
		"a call": {NeverReturned(&history.Hung{Worker: 2, Text: "lock.Unlock"}, before), "calls", "hung-call",
			"a call of the lock by w02 does not return, although its context has ended and all connections are broken",
			[]string{"a call of the lock by w02 does not return, although its context has ended and all " +
				"connections are broken",
				"lock.Unlock"}},
	} {
		v := test.got
		if v.Status != Fail || v.Checker != test.checker || v.Cause != test.cause || v.Summary != test.summary ||
			v.Violations != 1 || !slices.Equal(v.Story, test.story) || len(v.Evidence) != 1 ||
			v.Evidence[0].Worker != 2 {
			t.Errorf("%s: got %+v", name, v)
		}
	}
	if v := BrokeDown(&history.Breakdown{Text: "it panics"}, nil); v.Evidence != nil {
		t.Errorf("evidence without an operation: %+v", v.Evidence)
	}
}

// TestServersThatBreakTheirPromises: a violation that every lock would then commit does not count.
func TestServersThatBreakTheirPromises(t *testing.T) {
	const keys, clock = history.LosesKeys, history.LosesTime
	double := map[string]int64{history.DoubleGrant: 1, history.ServiceLoss: 1}
	for name, test := range map[string]struct {
		checker string
		causes  map[string]int64
		count   int64
		fenced  bool
		loses   history.Loss
		want    bool
	}{
		"a loss":                       {"exclusion", map[string]int64{history.ServiceLoss: 2}, 2, false, keys, false},
		"a loss, and something else":   {"exclusion", double, 2, false, keys, true},
		"no violation is counted":      {"once", nil, 0, false, keys, true},
		"an order, and a clock":        {"linearizable", nil, 1, false, clock, false},
		"an order, and nothing":        {"linearizable", nil, 1, false, history.NoLoss, true},
		"an update, and lost keys":     {"lost-updates", nil, 1, true, keys, false},
		"an update, and a clock":       {"lost-updates", nil, 1, false, clock, false},
		"a fenced update, and a clock": {"lost-updates", nil, 1, true, clock, true},
		"a fence, and a clock":         {"fencing", nil, 1, true, clock, true},
		"a fence, and lost keys":       {"fencing", nil, 1, true, keys, false},
		"an entry, and lost keys":      {"reentrancy", nil, 1, false, keys, false},
		"equal tokens": {"release", map[string]int64{history.EqualTokens: 1}, 1, false,
			history.NoLoss, false},
		"a lock that is stuck": {"liveness", nil, 1, false, keys, true},
	} {
		v := Verdict{Checker: test.checker, Causes: test.causes, Violations: test.count}
		h := &history.History{Header: history.Header{Fenced: test.fenced,
			Faults: []history.Injection{
				{Effect: history.Effect{Hits: []history.Party{history.Servers}, Loses: test.loses}},
			}}}
		if got := v.Holds(h); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
