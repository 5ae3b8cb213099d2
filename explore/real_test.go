package explore

import (
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/live"
)

// foundBy is a counterexample whose last deviation ends in such words.
func foundBy(t *testing.T, lock, what string, o Options) *Found {
	t.Helper()
	s := newSearch(t, find(t, lock), o)
	s.judged = func(run *schedule, v *checker.Verdict) bool {
		n := len(run.taken)
		return v != nil && (what == "" || n > 0 && strings.HasSuffix(run.taken[n-1].What, what))
	}
	if err := s.levels(); err != nil || s.report.Found == nil {
		t.Fatalf("%s: nothing found with %q: %v", lock, what, err)
	}
	return s.report.Found
}

// quickly are options for a real run of two seconds or three.
func quickly(t *testing.T, lock string) Options {
	o := suited(find(t, lock), 1)
	if o.Budget = 5 * time.Second; lock == "setnx" { // two waiters lose their patience
		o.Budget = 20 * time.Second
	}
	return o
}

// TestLiveCounterexamplesShowOnServers: what was found in virtual time is there on real servers in real time, if the
// machine is not late by more than the leases allow. If it is, the run diverges, and says so.
func TestLiveCounterexamplesShowOnServers(t *testing.T) {
	for i, tt := range []struct{ lock, what string }{
		{"half-quorum", "request set: is lost"},
		{"plain-del", ""},
		{"local-reentry", "reply eval: is lost"},
		{"get-del", "reply get: is paused"},
		{"watch-lax", ""},
		{"none", ""},
		{"extend-overwrites", "all keys were lost"},
		{"setnx", "crashes"},
	} {
		t.Run(tt.lock, func(t *testing.T) {
			if testing.Short() && i > 1 {
				t.Skip("some stand for all")
			}
			o := quickly(t, tt.lock)
			f := foundBy(t, tt.lock, tt.what, o)
			live.Again(t, func(int) string {
				r, err := onServers(t, find(t, tt.lock), o, f)
				if err != nil {
					t.Fatal(err)
				}
				if !r.Shows {
					return f.Summary + ": " + r.String()
				}
				if !strings.HasPrefix(r.Verdict, f.Checker) || !strings.HasPrefix(r.Server, "Redis") {
					t.Errorf("%s: %s", f.Summary, r)
				}
				return ""
			})
		})
	}
}

// TestLiveDifferenceFromTheTraceIsDivergence: a model that answers what Redis does not, and one that lets a client do
// what it does not do, are told from a real run at the step in question.
func TestLiveDifferenceFromTheTraceIsDivergence(t *testing.T) {
	o, spec := quickly(t, "plain-del"), find(t, "plain-del")
	f := foundBy(t, "plain-del", "", o)
	for name, tt := range map[string]struct {
		plant func(*step)
		want  string
	}{
		"another answer":  {func(s *step) { s.e.x.answer = []string{"nil"} }, `the server answers ["OK"], the model ["nil"]`},
		"another request": {func(s *step) { s.e.kind, s.e.words = request, []string{"get", "p"} }, "w00 request GET p is paused: this does not come in 1s, but w00 reply SET p"},
	} {
		live.Again(t, func(int) string {
			p, o, err := stretched(t, spec, o, f)
			if err != nil {
				t.Fatal(err)
			}
			p.patience = time.Second
			const first = 2 // the reply to the first SET
			tt.plant(&p.steps[first])
			r, err := perform(t, spec, &o, p, f.Checker)
			if err != nil {
				t.Fatal(err)
			}
			text := r.String()
			if r.Step > 0 && r.Step <= first {
				return text
			}
			if r.Shows || r.Step != first+1 || !strings.Contains(text, "no, diverges at step 3 of") || !strings.Contains(text, tt.want) {
				t.Errorf("%s: got %s", name, text)
			}
			return ""
		})
	}
}

// TestWhatNoServerDoesIsNotTried: clocks do not jump on demand, and nobody waits longer than the budget.
func TestWhatNoServerDoesIsNotTried(t *testing.T) {
	for want, p := range map[string]performance{
		"its clock does not jump on demand":                       {steps: []step{{act: leaps}}},
		"the schedule takes 10s of real time, --budget allows 5s": {length: 10 * time.Second},
	} {
		o := quickly(t, "plain-del")
		r, err := perform(t, find(t, "plain-del"), &o, p, "exclusion")
		if err != nil || r.Shows || r.String() != "cannot be shown on a real server: "+want {
			t.Errorf("%s: got %v, %v", want, r, err)
		}
	}
}

// TestAnswersAreComparedButForTokensAndTimes: everything else has to be the same.
func TestAnswersAreComparedButForTokensAndTimes(t *testing.T) {
	n := names{"0123456789abcdef": "fedcba9876543210"}
	for name, tt := range map[string]struct {
		script, here string
		want         bool
	}{
		"equal":            {"OK", "OK", true},
		"nothing":          {"", "OK", false},
		"its token":        {"0123456789abcdef", "fedcba9876543210", true},
		"another token":    {"0123456789abcdef", "aaaaaaaaaaaaaaaa", false},
		"what is left":     {"250", "243", true},
		"another lease":    {"250", "20", false},
		"a count":          {"1", "2", false},
		"no lease":         {"-1", "250", false},
		"clocks":           {"946684800000", "1790000000000", true},
		"more than a word": {"1 2", "1", false},
	} {
		if got := n.answers(strings.Fields(tt.script), strings.Fields(tt.here), 300*time.Millisecond); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	if !n.same([]string{"SET", "p", "0123456789abcdef"}, []string{"SET", "p", "ffffffffffffffff"}) || n.same([]string{"SET", "p", "long-enough"}, []string{"GET", "p", "long-enough"}) {
		t.Error("requests differ by more than their tokens and numbers")
	}
}
