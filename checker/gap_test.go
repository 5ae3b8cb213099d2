package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestAShortGapDisturbsNobody: only one that may have cost a lease does.
func TestAShortGapDisturbsNobody(t *testing.T) {
	const ttl = 3 * time.Second
	for long, felt := range map[time.Duration]bool{60 * time.Millisecond: false, time.Second: true} {
		h := &history.History{Header: history.Header{
			Workers: 1, Keys: 1, Processes: 1, Claims: history.Claims{Excludes: true, Expires: true},
		}, Ops: []history.Op{
			{ID: 1<<40 | 1, Hold: 1<<40 | 1, Kind: history.Acquire, Call: 1, Return: 2, Until: ttl, TTL: ttl,
				Outcome: history.OK},
			{ID: 2<<40 | 1, Kind: history.Gap, Worker: -1, Key: -1, Call: time.Second, Return: time.Second + long,
				Outcome: history.OK},
		}}
		c, err := Prepare(h)
		if err != nil {
			t.Fatal(err)
		}
		list := c.disturbed
		if len(list) != 0 != felt {
			t.Errorf("a gap of %v disturbs %v", long, list)
		}
	}
}
