package topologies

import (
	"testing"
	"time"
)

// TestOneInSoManyMessagesIsLate: the others are not, and the same ones are late for the same seed.
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
