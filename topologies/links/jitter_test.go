package links

import (
	"testing"
	"time"
)

// TestOneInSoManyMessagesIsLate: the others are not, and the same seed delays the same messages.
func TestOneInSoManyMessagesIsLate(t *testing.T) {
	rule := Rule{Effect: Delay, Latency: time.Second, Seed: 7, OneIn: 10}
	first, second, late := newJitter(rule, "c1", "n1"), newJitter(rule, "c1", "n1"), 0
	for i := range 10_000 {
		d := first.draw()
		if again := second.draw(); again != d || d != 0 && d != time.Second {
			t.Fatalf("message %d: %v, then %v", i, d, again)
		}
		if d > 0 {
			late++
		}
	}
	if late < 800 || late > 1200 {
		t.Errorf("%d of 10000 messages are late, want a tenth", late)
	}
	rule.OneIn = 0
	all := newJitter(rule, "c1", "n1")
	for i := range 10 {
		if d := all.draw(); d != time.Second {
			t.Errorf("message %d is late by %v, want each by a second", i, d)
		}
	}
}

func TestJitterIsDrawnByItsSeed(t *testing.T) {
	t.Parallel()
	draws := func(seed uint64, to Party) (d []time.Duration) {
		j := newJitter(Rule{Latency: time.Millisecond, Jitter: time.Second, Seed: seed}, "n1", to)
		for range 5 {
			d = append(d, j.draw())
		}
		return d
	}
	first, again := draws(1, "n2"), draws(1, "n2")
	for i := range first {
		if first[i] != again[i] {
			t.Errorf("draw %d: %v and %v", i, first[i], again[i])
		}
		if first[i] < time.Millisecond || first[i] > time.Second+time.Millisecond {
			t.Errorf("draw %d: %v", i, first[i])
		}
	}
	if other := draws(2, "n2"); other[0] == first[0] {
		t.Error("another seed draws the same")
	}
	if other := draws(1, "n3"); other[0] == first[0] {
		t.Error("another path draws the same")
	}
}
