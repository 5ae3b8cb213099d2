package checker

import (
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/history"
)

// cases maps the histories of testdata/cases to their right verdicts: the worst cause, "" if nothing fails.
var cases = map[string]string{
	// A server that forgot a hold does not release it with success.
	"forgot-nodes1": "false-release",
	// The only server still had the key after it had failed.
	"incident-but-key-seen": "double-grant",
	// A server admits two readers at the same time, and the later reader hears of it first.
	"ordered-readers-in-one-batch": "",
	// A grant may stand on three of five sites, and one of them comes back empty.
	"redlock-one-of-five-restarts": "",
	// The owner was told of the loss, and its release succeeded after that.
	"told-lost-then-released": "false-release",
	// The example of METHOD.md.
	"released-anothers": "foreign-release",
	// Another worker is granted the lock within the lease that an extension promised.
	"extended-for-nothing": "false-extension",
	// A hold was lost after a promotion, before the former primary followed.
	"lost-before-the-primary-followed": "",
	// A fault emptied one of three sites, and a grant may stand on two.
	"lost-with-a-majority-left": "",
	// One of two servers failed, and still had the key afterwards.
	"incident-but-key-seen-there": "double-grant",
	// Two of three sites had the key, and only the third one had failed, before another hold.
	"seen-on-the-other-sites": "double-grant",
	// A majority of sites extended the lease, or had the key, after they had failed.
	"extended-after-the-fault":    "double-grant",
	"extended-after-the-incident": "double-grant",
	"seen-after-the-fault":        "double-grant",
	// The counter's server failed, or lost its last writes, after all visits and before the page was read.
	"incident-before-the-end": "",
	"role-before-the-end":     "",
	// The only server failed, and had the keys of two holds after that.
	"both-keys-after-an-incident": "double-grant",
	// An extension told a deadline that is earlier than the lease that was asked for.
	"begins-extended": "",
	// A fenced counter took a store without an answer after one with a greater token.
	"stale-store-at-the-end": "zombie-write, stale-store",
	// At the end a page has more views than were stored.
	"more-than-was-stored": "corrupt",
	// The holder died, and its key was there after the run, later than its lease allows.
	"found-after-its-lease": "ttl-too-long",
	// A key was to expire later than the lease of its grant.
	"sight-to-expire-too-late": "ttl-too-long",
	// The key of a lease has no expiry.
	"sight-without-end": "ttl-too-long",
}

func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/*.jsonl")
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d files, %v; want %d", len(files), err, len(cases))
	}
	for _, file := range files {
		verdicts, err := JudgeFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := cases[strings.TrimSuffix(filepath.Base(file), ".jsonl")]
		if got := strings.Join(failed(verdicts), ", "); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// TestABareMajority: one of five sites comes back empty between two grants. If that was not planned, it excuses the
// lock; if it was planned, it is a service-loss. The first grant had a larger majority if its key was seen on three
// other sites, or on the site itself after it came back. Then it is no excuse.
func TestABareMajority(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		planned bool
		seen    []int64 // sites with the key when the failed one is back
		want    string
	}{
		"unplanned":                         {want: "inconclusive"},
		"planned":                           {planned: true, want: "fail service-loss"},
		"seen on two others":                {seen: []int64{0, 1}, want: "inconclusive"},
		"seen on three others":              {seen: []int64{0, 1, 4}, want: "fail double-grant"},
		"seen on two, and there afterwards": {seen: []int64{0, 1, 2}, want: "fail double-grant"},
	} {
		s := newScript()
		s.Sites, s.Nodes = 5, 5
		handOffs(s)
		a := s.acquire(1, 9000, 9001, 300)
		if tt.planned {
			s.fault(serverDies, 9010, 9020)
		} else {
			s.op(history.Incident, -1, 9010, 9020).Value = 2
		}
		for _, site := range tt.seen {
			op := s.op(history.Sight, -1, 9025, 9026)
			op.Token, op.Value, op.Until = uint64(a), site, 9300*ms
		}
		b := s.acquire(2, 9030, 9031, 300)
		s.release(b, 9050, 9051)
		s.release(a, 9060, 9061)
		v := Exclusion.Check(s.prepare(t))
		if got := strings.TrimSpace(v.Status.String() + " " + v.Cause); got != tt.want {
			t.Errorf("%s: got %s: %s, want %s", name, got, v.Summary, tt.want)
		}
	}
}

// TestWhatWasForgottenIsNotReleased: the only server fails between two grants, and forgets the first one. The answer
// to the release of the first hold says that the hold is lost, or wrongly says that the release succeeded. With
// several servers, one of them may still have the old key.
func TestWhatWasForgottenIsNotReleased(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lost   bool // the first release is answered "lost"
		nodes  int
		second bool // the server fails once more before the release
		want   string
	}{
		"told so":          {lost: true, nodes: 1, want: "inconclusive"},
		"a lie":            {nodes: 1, want: "fail false-release"},
		"failed again":     {nodes: 1, second: true, want: "fail false-release"}, // it cannot have both keys back
		"one of three":     {nodes: 3, want: "inconclusive"},
		"not known of how": {nodes: 0, want: "inconclusive"},
	} {
		s := newScript()
		s.Nodes = tt.nodes
		handOffs(s)
		a := s.acquire(1, 9000, 9001, 300)
		s.op(history.Incident, -1, 9010, 9020)
		b := s.acquire(2, 9030, 9031, 300)
		if tt.second {
			s.op(history.Incident, -1, 9040, 9045)
		}
		if tt.lost {
			s.denied(a, 9050, 9051)
		} else {
			s.release(a, 9050, 9051)
		}
		s.release(b, 9060, 9061)
		v := Exclusion.Check(s.prepare(t))
		if got := strings.TrimSpace(v.Status.String() + " " + v.Cause); got != tt.want {
			t.Errorf("%s: got %s: %s, want %s", name, got, v.Summary, tt.want)
		}
	}
}

// TestALossOfThePlanStaysThat: a planned fault ends the only server, which is slow to answer afterwards. The slow
// answer may be recorded as an unplanned incident, too. The loss must still count as planned.
func TestALossOfThePlanStaysThat(t *testing.T) {
	t.Parallel()
	for _, incident := range []bool{false, true} {
		s := newScript()
		s.Nodes = 1
		handOffs(s)
		a := s.acquire(1, 9000, 9001, 300)
		s.fault(serverDies, 9010, 9020)
		if incident {
			s.op(history.Incident, -1, 9012, 9030)
		}
		b := s.acquire(2, 9040, 9041, 300)
		s.denied(a, 9050, 9051)
		s.release(b, 9060, 9061)
		if v := Exclusion.Check(s.prepare(t)); v.Status != Fail || v.Cause != history.ServiceLoss {
			t.Errorf("incident %t: got %s %q: %s", incident, v.Status, v.Cause, v.Summary)
		}
	}
}
