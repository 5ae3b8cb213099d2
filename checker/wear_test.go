package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// worked is a history of one process, with samples of its resources. The samples are a second apart, and before each
// of them the process made the given number of tries.
func worked(tries int, at ...history.Wear) *history.History {
	h := &history.History{Header: history.Header{Workers: 1, Keys: 1, Claims: history.Claims{Excludes: true}}}
	for i := range at {
		at[i].At, at[i].Workers = time.Duration(i+1)*time.Second, 1
		for n := range tries {
			id := history.ID(1<<40 + i*tries + n + 1)
			call := time.Duration(i)*time.Second + time.Duration(n)*time.Microsecond
			h.Ops = append(h.Ops, history.Op{ID: id, Kind: history.Acquire, Hold: id, Call: call, Return: call + 1,
				Outcome: history.Failed, Reason: history.Busy})
		}
	}
	h.Measured = &history.Measured{Wear: at}
	return h
}

// TestWhatAClientKeeps: a resource that grows with the calls from each rest to the next is a leak. A resource that is
// made once, or only a few times for each worker, is not.
func TestWhatAClientKeeps(t *testing.T) {
	threads := func(n int64) history.Wear { return history.Wear{Goroutines: n} }
	files := func(n int64) history.Wear { return history.Wear{Files: n} }
	memory := func(n int64) history.Wear { return history.Wear{Memory: n} }
	cpu := func(x float64) history.Wear { return history.Wear{CPU: x} }
	for name, tt := range map[string]struct {
		history *history.History
		driver  bool
		want    Status
		says    string
	}{
		"a goroutine a try": {worked(500, threads(500), threads(1000), threads(1500)), false, Fail,
			"process 0 has 500 goroutines in its first rest, 1 000 after 500 calls more, 1 500 after 500 calls more"},
		"one in 20": {worked(500, threads(10), threads(35), threads(60)), false, Fail, "goroutines"},
		"one in 25": {worked(500, threads(10), threads(30), threads(50)), false, Pass, ""},
		"nothing": {worked(500, threads(10), threads(10), threads(10)), false, Pass,
			"nothing grows from one to the next of 3 rests, with 0 taken, 1500 refused"},
		"it is made once":            {worked(500, threads(10), threads(500), threads(501)), false, Pass, ""},
		"it is made late":            {worked(500, threads(10), threads(11), threads(500)), false, Pass, ""},
		"fewer than for each worker": {worked(60, threads(10), threads(25), threads(40)), false, Pass, ""},
		"a connection a try": {
			worked(500, files(9), files(509), files(1009)), false, Fail, "open files and connections",
		},
		"100 bytes a try":        {worked(9000, memory(9e5), memory(18e5), memory(27e5)), false, Fail, "KiB of memory"},
		"the same, of a program": {worked(9000, memory(9e5), memory(18e5), memory(27e5)), true, Pass, ""},
		"garbage of a program": {worked(700, memory(69e6), memory(142e6), memory(291e6)), true, Pass,
			"the program's memory grew by 216 796 KiB, which is not judged"},
		"threads, of a program":  {worked(500, threads(500), threads(1000), threads(1500)), true, Fail, "threads"},
		"timers":                 {worked(500, cpu(0.02), cpu(0.25), cpu(0.5)), false, Fail, "of a CPU in use"},
		"a process that is busy": {worked(500, cpu(0.9), cpu(1), cpu(0.9)), false, Pass, ""},
		"too few rests": {
			worked(500, threads(500), threads(1000)), false, Inconclusive, "too few calls or rests",
		},
		"too few calls": {
			worked(20, threads(500), threads(1000), threads(1500)), false, Inconclusive, "too few calls or rests",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.driver {
				tt.history.Measured.Driver = &history.Driver{}
			}
			c, err := Prepare(tt.history)
			if err != nil {
				t.Fatal(err)
			}
			v := weighWear(c)
			if v.Status != tt.want || (v.Cause == history.ClientLeak) != (tt.want == Fail) ||
				!strings.Contains(v.Summary, tt.says) {
				t.Errorf("got %v %s: %s", v.Status, v.Cause, v.Summary)
			}
		})
	}
}
