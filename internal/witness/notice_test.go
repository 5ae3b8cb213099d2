package witness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var noticeNames = map[NoticeKind]string{Waits: "waits", Refused: "refused", GaveUp: "gave up", Granted: "granted",
	Released: "released", Ended: "ended",
	Taken: "taken", Closed: "closed", LateRelease: "late", Endless: "endless", Violation: "violation"}

// noticed has scripts, and the notices that each must give.
var noticed = map[string]struct {
	o     Options
	lines []string
	want  []string
}{
	"a wait, and a hand-off": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 = nil",
		"B 8 9 SET lock:1 b NX PX 100 = nil",
		"A 16 17 DEL lock:1 = 1", "! 17 DEL lock:1", "B 20 21 SET lock:1 b NX PX 100 = OK",
		"! 21 SET lock:1 b PXAT +120", "B 30 31 DEL lock:1 = 1", "! 31 DEL lock:1"},
		want: []string{
			"granted A 1ms", "refused B", "waits B", "refused B", "released A 14ms", "granted B 17ms free 4ms",
			"released B 9ms",
		}},
	"before any grant was seen": {lines: []string{
		"B 4 5 SET lock:1 b NX PX 100 = nil", "B 14 15 SET lock:1 b NX PX 100 = nil",
		"B 24 25 SET lock:1 b NX PX 100 = OK", "! 26 SET lock:1 b PXAT +124", "B 30 31 DEL lock:1 = 1",
		"! 31 DEL lock:1"},
		want: []string{"refused B", "waits B", "refused B", "granted B 21ms", "released B 5ms"}},
	"a late release, in vain": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "! 105 DEL lock:1",
		"A 210 211 DEL lock:1 = 0"},
		want: []string{"granted A 1ms", "ended A 99ms", "late A"}},
	"a foreign release": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 120 121 SET lock:1 b NX PX 100 = OK",
		"! 122 DEL lock:1", "& 122 SET lock:1 b PXAT +220",
		"A 130 131 DEL lock:1 = 1", "! 131 DEL lock:1", "B 140 141 DEL lock:1 = 0"},
		want: []string{
			"granted A 1ms", "granted B 1ms", "ended A 99ms", "taken B 10ms",
			"violation A foreign-release", "late B",
		}},
	"past the proxy": {lines: []string{ // the hold lasts from effect to effect
		"! 3 SET lock:1 a PXAT +101", "! 43 DEL lock:1", "B 80 81 SET lock:1 b NX PX 100 = OK",
		"! 82 SET lock:1 b PXAT +180"},
		want: []string{"granted ", "released  40ms", "granted B 1ms"}},
	"overwritten": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 20 21 SET lock:1 b PX 100 = OK",
		"! 22 SET lock:1 b PXAT +120"},
		want: []string{"granted A 1ms", "violation B overwritten", "taken A 20ms", "granted B 1ms"}},
	"without effects": {lines: []string{
		"T 0 0 lost", "A 1 2 0 SET lock:1 a NX PX 100 = OK", "B 4 5 0 SET lock:1 b NX PX 100 = nil",
		"A 6 7 0 DEL lock:1 = 1", "B 8 9 0 SET lock:1 b NX PX 100 = OK"},
		want: []string{"granted A 1ms", "refused B", "waits B", "released A 4ms", "granted B 5ms free 2ms"}},
	"a token for each try": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 = nil",
		"B 8 9 SET lock:1 c NX PX 100 = nil", "B 14 15 SET lock:1 d NX PX 100 = nil"},
		want: []string{
			"granted A 1ms", "refused B", "waits B", "refused B", "waits B", "gave up B 1ms", "refused B", "waits B",
			"gave up B 1ms",
		}},
	"two threads on one connection": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 = nil",
		"B 8 9 SET lock:1 c NX PX 100 = nil", "B 14 15 SET lock:1 b NX PX 100 = nil",
		"B 18 19 SET lock:1 c NX PX 100 = nil", "B 24 25 SET lock:1 b NX PX 100 = nil"},
		want: []string{
			"granted A 1ms", "refused B", "waits B", "gave up B 1ms", "refused B", "waits B", "refused B", "waits B",
			"refused B", "refused B",
		}},
	"killed": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 = nil",
		"B 8 9 SET lock:1 b NX PX 100 = nil", "B 50 51 SET lock:2 b NX PX 100 = OK",
		"! 52 SET lock:2 b PXAT +150", "K 3000"},
		want: []string{"granted A 1ms", "refused B", "waits B", "refused B", "gave up B 5ms"}},
}

// TestNotices: each step of a lock is reported once, with its client and its duration.
func TestNotices(t *testing.T) {
	for name, c := range noticed {
		var all []string
		c.o.Notice = func(n Notice) {
			text := fmt.Sprintf("%s %s", noticeNames[n.Kind], n.Client)
			switch {
			case n.Key != "lock:1":
				return
			case n.Kind == Violation:
				text += " " + n.Cause
			case n.For > 0:
				text += fmt.Sprint(" ", n.For)
			}
			if n.Handed {
				text += fmt.Sprint(" free ", n.Free)
			}
			all = append(all, text)
		}
		told(t, c.o, c.lines...)
		for _, want := range c.want {
			if i := slices.Index(all, want); i < 0 {
				t.Errorf("%s: %q is not told: %s", name, want, strings.Join(all, "; "))
			} else {
				all = slices.Delete(all, i, i+1)
			}
		}
		if all = slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, "closed") }); len(all) > 0 {
			t.Errorf("%s: told besides: %s", name, strings.Join(all, "; "))
		}
	}
}

// TestTimeTells: after some time, the reader reports a lease that ended without a release, a lock without an expiry,
// and a client that stopped trying. Open returns the steps in progress.
func TestTimeTells(t *testing.T) {
	all := map[NoticeKind][]time.Duration{}
	r, _ := told(t, Options{Notice: func(n Notice) { all[n.Kind] = append(all[n.Kind], n.For) }},
		"T 0 0 lost", "A 1 2 0 SET lock:1 a NX PX 100 = OK", "B 4 5 0 SETNX lock:2 b = 1",
		"C 6 7 0 SET lock:2 c NX PX 100 = nil", "C 16 17 0 SET lock:2 c NX PX 100 = nil")
	if open := r.Open(r.now); len(open) != 3 {
		t.Errorf("open: %+v", open)
	}
	r.Tick(r.now + roundBound + 2*quietBound)
	open := r.Open(r.now)
	if len(open) != 1 || open[0].Kind != Granted || open[0].Key != "lock:2" || open[0].For < time.Second {
		t.Errorf("open: %+v", open)
	}
	if !slices.Equal(all[Ended], []time.Duration{99 * time.Millisecond}) || len(all[Endless]) != 1 ||
		!slices.Equal(all[GaveUp], []time.Duration{11 * time.Millisecond}) {
		t.Errorf("told: %v", all)
	}
}

// TestSimulatedNotices: the notices of simulated clients add up. Each grant and each wait has one end, or continues.
// The number of reported foreign releases is right.
func TestSimulatedNotices(t *testing.T) {
	told, made := 0, 0
	for seed := range uint64(60) {
		w := newWorld(seed)
		w.plain, w.late = seed%2 == 1, []float64{0, 0.05, 0.2}[seed%3]
		w.run(2+int(seed%5), 25)
		count, foreign, waited := map[NoticeKind]int{}, 0, 0
		r, _ := w.read(Options{Notice: func(n Notice) {
			count[n.Kind]++
			if n.Waited {
				waited++
			}
			if n.Cause == ForeignRelease {
				foreign++
			}
			if n.For < 0 || n.Free < 0 || n.For > time.Minute || n.Kind == Released && n.Lease != simulatedLease {
				t.Errorf("seed %d: %+v", seed, n)
			}
		}})
		open := map[NoticeKind]int{}
		for _, n := range r.Open(r.now) {
			open[n.Kind]++
		}
		ends := count[Released] + count[Ended] + count[Taken] + count[Closed]
		if count[Granted] != len(w.answered) || ends+open[Granted] != count[Granted] || count[Closed] > 0 ||
			waited+count[GaveUp]+open[Waits] != count[Waits] ||
			int64(count[Refused]) != r.Refused || int64(count[Released]+foreign) != r.Releases {
			t.Errorf("seed %d: %v, %d waited; open: %v; %+v", seed, count, waited, open, r.Tallies)
		}
		if !w.plain && foreign > 0 || foreign > w.foreign+1 {
			t.Errorf("seed %d: %d foreign releases are told of %d", seed, foreign, w.foreign)
		}
		told, made = told+foreign, made+w.foreign
	}
	if told*10 < made*9 || made == 0 {
		t.Errorf("%d of %d foreign releases are told", told, made)
	}
}

// TestRolling: when older operations are dropped, no right lock is accused, and nothing is invented.
func TestRolling(t *testing.T) {
	caught := 0
	for seed := range uint64(60) {
		w := newWorld(seed)
		w.plain, w.late = seed%2 == 1, []float64{0, 0.05, 0.2}[seed%3]
		if seed%5 == 0 && !w.plain {
			w.lost = 0.02
		}
		w.run(2+int(seed%5), 60)
		r, h := w.read(Options{Holder: Holder{By: Auto}, Rolling: true, Most: 100 + int(seed)})
		causes := failed(t, h)
		switch {
		case w.lost > 0 && slices.Equal(causes, []string{"exclusion: phantom"}):
		case w.foreign == 0 && len(causes) > 0:
			t.Errorf("seed %d: a right run is accused: %v", seed, causes)
		case len(causes) > 0:
			caught++
		}
		if r.dropped == 0 || len(h.Ops) > 200+int(seed) || r.Grants < int64(len(w.answered)) {
			t.Errorf("seed %d: %d operations of which %d were forgotten, %d grants of %d", seed, len(h.Ops), r.dropped,
				r.Grants, len(w.answered))
		}
	}
	if caught < 10 {
		t.Errorf("%d runs with foreign releases are caught", caught)
	}
}

// TestAClientKeepsItsNumber: a client that makes a token for each hold has one worker number, so that stories and
// fairness are about clients.
func TestAClientKeepsItsNumber(t *testing.T) {
	var lines []string
	for n := range 40 {
		who, at := string(rune('A'+n%2)), 1+20*n
		lines = append(lines, fmt.Sprintf("%s %d %d SET lock:1 t%d NX PX 100 = OK", who, at, at+1, n),
			fmt.Sprintf("! %d SET lock:1 t%d PXAT +%d", at+2, n, at+100),
			fmt.Sprintf("%s %d %d DEL lock:1 = 1", who, at+10, at+11), fmt.Sprintf("! %d DEL lock:1", at+12))
	}
	_, h := told(t, Options{}, lines...)
	if h.Workers != 2 {
		t.Errorf("%d workers, want 2", h.Workers)
	}
}

// TestHeldByTheDead: refused tries are counted long after the holder's connection ended, if its lease is endless or
// others keep it alive. They are not counted during the lease that the holder itself has set. They are not counted
// either if the holder's token comes on another connection.
func TestHeldByTheDead(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  int64
	}{
		"without a lease":       {[]string{"A 1 2 SETNX lock:1 a = 1", "! 3 SETNX lock:1 a"}, 2},
		"within its lease":      {[]string{"A 1 2 SET lock:1 a NX PX 9000 = OK", "! 3 SET lock:1 a PXAT +9001"}, 0},
		"another connection":    {[]string{"A 1 2 SETNX lock:1 a = 1", "! 3 SETNX lock:1 a"}, 0},
		"a lease kept by tries": {[]string{"A 1 2 SET lock:1 a NX PX 900 = OK", "! 3 SET lock:1 a PXAT +901"}, 2},
	} {
		lines := slices.Concat(c.lines, []string{"X 10 A"})
		for n := range 5 {
			at := 800 + 800*n
			lines = append(lines, fmt.Sprintf("B %d %d SETNX lock:1 b = 0", at, at+1))
			switch name {
			case "a lease kept by tries":
				lines = append(lines, fmt.Sprintf("B %d %d PEXPIRE lock:1 900 = 1", at+2, at+3),
					fmt.Sprintf("! %d PEXPIREAT lock:1 +%d", at+3, at+902))
			case "another connection":
				lines = append(lines, fmt.Sprintf("C %d %d EVALSHA e00 1 lock:1 a 0 = 1", at+2, at+3),
					fmt.Sprintf("! %d PEXPIREAT lock:1 +%d", at+3, at+9000))
			}
		}
		if r, _ := told(t, Options{}, lines...); r.InVain < c.want || (c.want == 0) != (r.Orphaned == 0) {
			t.Errorf("%s: %d tries in vain, %d holds; want %d", name, r.InVain, r.Orphaned, c.want)
		}
	}
}
