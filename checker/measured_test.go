package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestWhatAVisitMayCost: waiters may try in vain as often as their backoff allows; more tries are a storm.
func TestWhatAVisitMayCost(t *testing.T) {
	t.Parallel()
	spent := func(commands float64) *float64 { return &commands }
	for name, tt := range map[string]struct {
		commands *float64
		visits   int64
		nodes    int
		want     Status
	}{
		"a lease":                   {spent(4 + 9), 30, 1, Pass},
		"a queue and its messages":  {spent(60), 30, 1, Pass},
		"five sites":                {spent(600), 30, 5, Pass},
		"a storm":                   {spent(600), 30, 1, Fail},
		"slow visits, many tries":   {spent(600), 4, 1, Pass},
		"servers that do not tell":  {nil, 30, 1, Inconclusive},
		"nobody who came to an end": {spent(0), 0, 1, Inconclusive},
	} {
		h := &history.Header{Workers: 4, Nodes: tt.nodes, Retry: 20 * time.Millisecond}
		v := weighCost(&history.Cost{Visits: tt.visits, Commands: tt.commands, Duration: 2 * time.Second}, h)
		if v.Status != tt.want || (v.Cause == "storm") != (tt.want == Fail) {
			t.Errorf("%s: got %s %q: %s, want %s", name, v.Status, v.Cause, v.Summary, tt.want)
		}
	}
}

// TestKeysInAnotherDatabase: keys were found in another database, which was not searched. A failed verdict mentions
// them. A lock that claims to leave nothing behind does not pass. Failures of another kind stay, and so does a pass
// without that claim.
func TestKeysInAnotherDatabase(t *testing.T) {
	t.Parallel()
	const where = "n1 had keys in database 0, and clients are sent to database 3"
	refused := map[string]string{"acquire unknown other": "ERR WRONGPASS invalid username-password pair"}
	all := WithMeasured([]Verdict{{Checker: history.Calls, Status: Fail, Cause: history.Unanswered}},
		&history.Measured{Said: refused}, &history.Header{}, 0)
	if v := all[0]; v.Status != Fail || !strings.HasSuffix(v.Remedy, " "+logInAgain) {
		t.Errorf("refused as another user: got %+v", v)
	}
	for name, tt := range map[string]struct {
		elsewhere string
		cleans    bool
		told      bool
		want      Status
	}{
		"none":               {"", true, false, Pass},
		"a lock that cleans": {where, true, true, Inconclusive},
		"one that does not":  {where, false, true, Pass},
	} {
		all := WithMeasured([]Verdict{{Checker: history.Exclusion, Status: Fail, Cause: history.DoubleGrant},
			{Checker: history.Liveness, Status: Pass}}, &history.Measured{Elsewhere: tt.elsewhere},
			&history.Header{Claims: history.Claims{Cleans: tt.cleans}}, 0)
		v := all[0]
		if told := slices.Contains(v.Story, where); v.Status != Fail || told != tt.told ||
			strings.HasSuffix(v.Remedy, " "+selectAgain) != told {
			t.Errorf("%s: got %+v", name, v)
		}
		if v := all[1]; v.Status != tt.want {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}

// TestALateDriverIsNoExcuseForTheLock: late pings leave the run undecided, but a violation that stamps prove stands.
func TestALateDriverIsNoExcuseForTheLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		driver history.Driver
		want   Status
		first  bool
	}{
		"in time":     {history.Driver{Pings: 10, Median: 20 * ms, Text: "ok"}, Pass, false},
		"late":        {history.Driver{Pings: 10, Median: 31 * ms, Text: "ok"}, Inconclusive, true},
		"silent once": {history.Driver{Pings: 10, Median: ms, Silent: 1, Text: "ok"}, Inconclusive, true},
		"no pings":    {history.Driver{Text: "ok"}, Inconclusive, true},
	} {
		s := newScript()
		doubleGrant(s, 10)
		s.Measured = &history.Measured{Driver: &tt.driver}
		verdicts, err := Judge(s.prepare(t))
		if err != nil {
			t.Fatal(err)
		}
		at := len(verdicts) - 1
		if tt.first {
			at = 0
		}
		if v := verdicts[at]; v.Checker != "driver" || v.Status != tt.want || !strings.HasSuffix(v.Summary, "ok") {
			t.Errorf("%s: got %+v, want %s", name, v, tt.want)
		}
		if !strings.Contains(strings.Join(failed(verdicts), " "), "double-grant") {
			t.Errorf("%s: the double grant is forgotten", name)
		}
	}
}

// TestASilentDriverKeepsWaiters: if the lock's program answers no ping, a waiter may wait for the program and not for
// the lock. So no verdict on waiting fails. A leftover key is still the lock's mistake, and a single late answer
// excuses nothing.
func TestASilentDriverKeepsWaiters(t *testing.T) {
	for driver, want := range map[history.Driver][2]Status{
		{Pings: 3, Median: ms}:            {Fail, Fail},
		{Pings: 3, Median: ms, Silent: 1}: {Fail, Fail},
		{Pings: 3, Median: time.Second}:   {Fail, Fail},
		{Silent: 2}:                       {Inconclusive, Fail},
	} {
		all := []Verdict{{Checker: history.Liveness, Status: Fail, Cause: history.Stuck},
			{Checker: history.Liveness, Status: Fail, Cause: history.Leak}}
		m := &history.Measured{Driver: &driver}
		all = WithMeasured(all, m, &history.Header{}, time.Second)
		all = slices.DeleteFunc(all, func(v Verdict) bool { return v.Checker == "driver" })
		if got := [2]Status{all[0].Status, all[1].Status}; got != want || (all[0].Cause == "") != (want[0] != Fail) {
			t.Errorf("%+v: got %s, want %s; cause %q", driver, got, want, all[0].Cause)
		}
	}
}

func failed(verdicts []Verdict) (causes []string) {
	for _, v := range verdicts {
		if v.Status == Fail {
			causes = append(causes, v.Cause)
		}
	}
	return causes
}

// TestAServiceThatEndedByItselfNeverPasses: the verdict names its program.
func TestAServiceThatEndedByItselfNeverPasses(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.Service, s.Measured = true, &history.Measured{Ended: []string{"the program ended unexpectedly"}}
	verdicts, err := Judge(s.prepare(t))
	if err != nil || verdicts[0].Status != Inconclusive ||
		!strings.Contains(verdicts[0].Summary, "ended unexpectedly") {
		t.Errorf("got %+v, %v", verdicts[0], err)
	}
}
