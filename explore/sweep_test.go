package explore

import (
	"strings"
	"testing"
	"time"
)

// TestASweepShowsWhereALockBreaks: a holder deletes another client's key if it is paused for longer than the rest of
// its lease, and only then.
func TestASweepShowsWhereALockBreaks(t *testing.T) {
	o := bounded(0)
	o.Visits = 1
	s, err := ParseSweep("pause=0.4ttl..0.8ttl", o.TTL)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t, find(t, "plain-del"), o)
	if err != nil {
		t.Fatal(err)
	}
	row := r.Envelope.String()
	first := strings.Index(row, "X")
	if first < 0 || row != strings.Repeat(".", first)+strings.Repeat("X", len(row)-first) {
		t.Fatalf("got %s, want clean and then broken", row)
	}
	if at := r.Envelope.Points[first].Value; at < o.TTL-o.Hold || at > o.TTL-o.Hold+25*time.Millisecond {
		t.Errorf("it breaks from %v on, want a lease less a hold, or one try later: %v", at, o.TTL-o.Hold)
	}
	if v := r.Verdict(); !strings.Contains(v, "breaks with one pause from 0.6") {
		t.Errorf("got %q", v)
	}
	var text, picture strings.Builder
	if err := WriteEnvelopes(&text, []Report{r}); err != nil || !strings.Contains(text.String(), row) {
		t.Errorf("%v: %s", err, &text)
	}
	if err := WriteEnvelopesSVG(&picture, []Report{r}); err != nil ||
		strings.Count(picture.String(), "<rect") != intervals+1 {
		t.Errorf("%v: %s", err, &picture)
	}
	if testing.Short() {
		return
	}
	for _, text := range []string{"pause=0..2ttl", "delay=0..2ttl", "hang=0..5ttl", "clock=1ms..1s"} {
		s, err := ParseSweep(text, o.TTL)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Run(t, find(t, "lease"), o); err != nil ||
			r.Envelope.String() != strings.Repeat(".", intervals+1) {
			t.Errorf("lease, %s: %v, %s", text, err, r.Envelope)
		}
	}
}

func TestASweepIsAParameterAndARange(t *testing.T) {
	for text, want := range map[string]Sweep{
		"pause=0..2ttl":        {"pause", 0, 600 * time.Millisecond},
		"clock=10ms..0.5ttl":   {"clock", 10 * time.Millisecond, 150 * time.Millisecond},
		"hang=0..1s":           {"hang", 0, time.Second},
		"stall=0..2ttl":        {},
		"pause":                {},
		"pause=2ttl..1ttl":     {},
		"pause=0..":            {},
		"pause=0..manyttl":     {},
		"pause=-1s..1s":        {},
		"pause=0ttl..0ttl":     {},
		"pause=0..2ttl..3ttl ": {},
	} {
		got, err := ParseSweep(text, Defaults.TTL)
		if (want == Sweep{}) != (err != nil) || err == nil && *got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}
