package program

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/witness"
)

// piece has one lock that was granted and released so many times.
func piece(number, visits int, at time.Duration) *witness.Piece {
	p := &witness.Piece{Number: number, To: at, Workers: 1,
		Locks: []witness.Lock{{Key: "lock:" + strconv.Itoa(number)}}, Notes: map[history.ID]string{}}
	for i := range visits {
		id := history.ID(1)<<40 | history.ID(1000*number+2*i+1)
		granted := at + time.Duration(2*i)
		grant := history.Op{ID: id, Hold: id, Kind: history.Acquire, Outcome: history.OK, Call: granted,
			Return: granted,
			TTL:    time.Second, Until: at + time.Second}
		release := history.Op{ID: id + 1, Hold: id, Kind: history.Release, Outcome: history.OK, Call: granted + 1,
			Return: granted + 1}
		p.Ops = append(p.Ops, grant, release)
	}
	return p
}

func numbers(all []*witness.Piece) (n []int) {
	for _, p := range all {
		n = append(n, p.Number)
	}
	return n
}

// TestLiveRecorder: pieces stay on disk for the time that the recorder keeps them. When they are read again, no
// operation is missing between two pieces, even if the process was killed.
func TestLiveRecorder(t *testing.T) {
	c := newRecorder(time.Minute)
	parent := t.TempDir()
	dir := filepath.Join(parent, RecorderDir)
	if err := c.open(dir); err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	for n := range 10 {
		c.take(piece(n, 5, time.Duration(n)*10*time.Second))
		live.Wait(t, "a piece on disk", func() bool { return len(c.shelved(&witness.Piece{Number: n + 1})) > 0 })
	}
	rest := piece(10, 2, 100*time.Second)
	if got := numbers(c.latest(rest, 1000)); !slices.Equal(got, []int{3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("pieces %v are kept for a minute", got)
	}
	if got := numbers(c.latest(rest, 30)); !slices.Equal(got, []int{8, 9, 10}) {
		t.Errorf("pieces %v have 30 operations at most", got)
	}
	recorded := func() int {
		h, err := Recorded(parent, &history.History{})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Validate(); err != nil {
			t.Error(err)
		}
		return len(h.Ops)
	}
	if got := recorded(); got != 70 {
		t.Errorf("%d operations without the rest", got)
	}
	c.rest(time.Second, func() *witness.Piece { return rest })
	c.rest(2*time.Second, func() *witness.Piece { t.Error("the rest is written too often"); return rest })
	if got := recorded(); got != 74 {
		t.Errorf("%d operations with the rest", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "6"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := numbers(c.latest(rest, 1000)); !slices.Equal(got, []int{7, 8, 9, 10}) || recorded() != 34 {
		t.Errorf("pieces %v behind one that is torn, %d operations", got, recorded())
	}
	if err := os.RemoveAll(dir); err != nil { // as if the disk were full
		t.Fatal(err)
	}
	c.take(rest)
	live.Wait(t, "a lost piece", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.lost == 1 })
	if got := numbers(c.latest(piece(11, 1, 110*time.Second), 1000)); !slices.Equal(got, []int{11}) {
		t.Errorf("pieces %v follow a lost one", got)
	}
}

// TestRipe: a lock is cut out some time after its first violation. Later violations of the lock wait for the next
// cut, for as long as the recorder keeps operations. At the end they need not wait, but violations of the last seconds
// are in no cut.
func TestRipe(t *testing.T) {
	c := newRecorder(time.Minute)
	violate := func(key string, at time.Duration) {
		c.violated(&witness.Notice{Key: key, At: at, Cause: witness.Overwritten})
	}
	count := func(now time.Duration, over bool) (n int) {
		for _, v := range c.ripe(now, over) {
			n += v.Count
		}
		return n
	}
	violate("a", time.Second)
	violate("b", 2*time.Second)
	violate("a", 3*time.Second)
	for i, step := range []struct {
		now  time.Duration
		over bool
		want int
	}{{cutAfter, false, 0}, {cutAfter + 2*time.Second, false, 3}, {cutAfter + 3*time.Second, false, 0}} {
		if got := count(step.now, step.over); got != step.want {
			t.Errorf("step %d: %d violations are cut out, want %d", i, got, step.want)
		}
	}
	violate("a", 20*time.Second)
	if got := count(50*time.Second, false); got != 0 {
		t.Errorf("%d are cut out again too early", got)
	}
	violate("c", 65*time.Second)
	if got := count(70*time.Second, true); got != 1 {
		t.Errorf("%d are cut out at the end", got)
	}
	violate("a", 71*time.Second)
	if got := count(200*time.Second, false); got != 2 {
		t.Errorf("%d are cut out later", got)
	}
}
