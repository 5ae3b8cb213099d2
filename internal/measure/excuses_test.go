package measure

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestWhatAPauseCanHaveCost: the pause of a process may cost one page view for each of its workers. It may also cost
// the views that other processes stored during the pause, or up to 10 ms before.
func TestWhatAPauseCanHaveCost(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	gap := func(process int16, value int64, from, to time.Duration) history.Op {
		return history.Op{Kind: history.Gap, Worker: -1, Key: -1, Process: process, Value: value, Call: from,
			Return: to}
	}
	for name, c := range map[string]struct {
		bears time.Duration
		gaps  []history.Op
		want  int64
	}{
		"no lease":                  {0, []history.Op{gap(0, 0, 50*ms, 900*ms)}, 0},
		"no pause":                  {100 * ms, nil, 0},
		"short":                     {100 * ms, []history.Op{gap(0, 0, 900*ms, 1000*ms)}, 0},
		"of the suite":              {100 * ms, []history.Op{gap(0, 1, 50*ms, 1000*ms)}, 0},
		"of a process with workers": {100 * ms, []history.Op{gap(1, 0, 850*ms, 1000*ms)}, 1 + 2*16},
		"of both": {100 * ms, []history.Op{gap(1, 0, 850*ms, 1000*ms), gap(0, 0, 850*ms, 1000*ms)},
			1 + 2*16 + 2 + 16},
		"of a process without visits": {100 * ms, []history.Op{gap(7, 0, 850*ms, 1000*ms)}, 3 * 16},
	} {
		m := NewMeter(Options{Workers: 3, Keys: 1, To: time.Second, Bears: c.bears})
		for at := time.Duration(0); at < time.Second; at += 10 * ms {
			for worker := range int32(3) {
				m.Observe(&history.Op{Kind: history.Store, Worker: worker, Process: int16(worker / 2),
					Outcome: history.OK, Call: at, Return: at + ms})
			}
		}
		for i := range c.gaps {
			m.Observe(&c.gaps[i])
		}
		if got := m.Overwritten(); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	m := NewMeter(Options{Workers: 3, Keys: 1})
	for _, node := range []int64{4, 1, 4} {
		m.Observe(&history.Op{Kind: history.Incident, Worker: -1, Key: -1, Value: node})
	}
	if got := m.Failed(); len(got) != 3 || got[0] != 4 || got[1] != 1 {
		t.Errorf("failed: got %v", got)
	}
}
