package measure

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/witness"
)

// TestLockNumbers: a wait that continues or was given up counts as at least that long, and a distribution says so.
func TestLockNumbers(t *testing.T) {
	l := NewLocks(func(string) string { return "lock:*" }, false)
	for i := range 40 {
		at := time.Duration(i) * time.Second
		l.Notice(witness.Notice{Kind: witness.Waits, Key: "lock:1", Client: "shop", At: at})
		l.Notice(witness.Notice{Kind: witness.Granted, Key: "lock:1", Client: "shop", At: at, For: time.Millisecond,
			Lease: time.Second, Waited: true, Handed: true, Free: 2 * time.Millisecond})
		l.Notice(witness.Notice{
			Kind: witness.Released, Key: "lock:1", Client: "shop", At: at, For: 250 * time.Millisecond,
			Lease: time.Second,
		})
	}
	for range 20 {
		l.Notice(witness.Notice{Kind: witness.Waits, Key: "lock:1", Client: "shop", At: time.Minute})
		l.Notice(witness.Notice{Kind: witness.GaveUp, Key: "lock:1", Client: "shop", At: time.Minute, For: time.Minute})
	}
	for range 1000 { // they were refused once and went away
		l.Notice(witness.Notice{Kind: witness.Waits, Key: "lock:1", Client: "shop", At: time.Minute})
		l.Notice(witness.Notice{Kind: witness.GaveUp, Key: "lock:1", Client: "shop", At: time.Minute})
	}
	var open []witness.Notice
	for range 40 {
		open = append(open, witness.Notice{Kind: witness.Waits, Key: "lock:1", Client: "shop", At: time.Minute,
			For: time.Hour})
	}
	open = append(open, witness.Notice{Kind: witness.Granted, Key: "lock:1", Client: "shop", At: time.Minute,
		For: 2 * time.Second})
	for range 2 { // reading changes nothing
		rows, hot := l.Numbers(time.Minute, open)
		n := rows[0]
		c := n.Clients
		if len(rows) != 1 || n.Grants != 40 || n.Releases != 40 || n.HeldNow != 1 || n.HeldMean < 0.19 ||
			n.HeldMean > 0.21 || c.Waiting != 40 || c.MostWaiting != 40 {
			t.Errorf("%+v %+v", n.LockNumbers, c)
		}
		if c.Wait.Text(c.Wait.P50) != ">3600 s" || c.Wait.Count != 100 || n.OfLease.P50 == nil ||
			*n.OfLease.P50 < 0.24 || *n.OfLease.P50 > 0.26 || c.HandOff.P50 == nil {
			t.Errorf("%s, of the lease %v", n.Text(), *n.OfLease.P50)
		}
		if len(hot) != 1 || hot[0].Grants != 40 || *hot[0].Waiting != 40 || hot[0].Held < 0.19 || hot[0].Held > 0.21 {
			t.Errorf("%+v", hot)
		}
	}
}

// TestLockNumbersOfAQuietStart: a program uses no lock for an hour. The hour does not count as time without a
// holder. A grant at the first try does not count as a wait.
func TestLockNumbersOfAQuietStart(t *testing.T) {
	l := NewLocks(func(string) string { return "lock:*" }, false)
	for i := range 100 {
		at := time.Hour + time.Duration(i)*time.Second
		l.Notice(witness.Notice{Kind: witness.Granted, Key: "lock:1", Client: "shop", At: at, For: time.Millisecond})
		l.Notice(witness.Notice{Kind: witness.Released, Key: "lock:1", Client: "shop", At: at + time.Second/2,
			For: time.Second / 2})
	}
	rows, _ := l.Numbers(time.Hour+100*time.Second, nil)
	if n := rows[0]; n.HeldMean < 0.49 || n.HeldMean > 0.51 || n.Clients.Wait.Count != 0 || n.Wait.Sum != 0 ||
		!strings.Contains(n.Text(), " · 0 waits · ") {
		t.Errorf("%+v of %+v", n.Text(), n.Clients.Wait)
	}
}

// TestHotLocks: there are more locks than are counted. The most requested ones are found nevertheless. A lock that
// was requested often, but hours ago, makes room for others.
func TestHotLocks(t *testing.T) {
	l := NewLocks(func(string) string { return "*" }, true)
	for i := range 100_000 {
		key := fmt.Sprint("once:", i)
		if i%50 < 10 {
			key = fmt.Sprint("hot:", i%50)
		}
		l.Notice(witness.Notice{Kind: witness.Granted, Key: key, At: time.Duration(i) * time.Millisecond})
	}
	_, hot := l.Numbers(100*time.Second, nil)
	for _, h := range hot {
		if h.Key[:4] != "hot:" || h.Grants != 2000 || h.Refused != nil {
			t.Errorf("%+v", h)
		}
	}
	for i := range 1000 {
		l.Notice(witness.Notice{Kind: witness.Granted, Key: "new", At: 3*time.Hour + time.Duration(i)})
	}
	if _, now := l.Numbers(3*time.Hour, nil); len(hot) != hotShown || now[0].Key != "new" ||
		len(l.hot.heap) != hotKept || len(l.hot.byKey) != hotKept {
		t.Errorf("%+v, %d kept", now, len(l.hot.heap))
	}
}

// TestLockProgramsAreBounded: if a program has a new name for each connection, later names are counted as "others".
func TestLockProgramsAreBounded(t *testing.T) {
	l := NewLocks(func(string) string { return "*" }, false)
	for i := range 10_000 {
		l.Notice(witness.Notice{Kind: witness.Granted, Key: "k", Client: fmt.Sprint("worker-", i)})
	}
	rows, _ := l.Numbers(time.Second, nil)
	if len(rows) != mostRows+1 || rows[0].Program != others || rows[0].Grants != 10_000-mostRows {
		t.Errorf("%d rows, the first %s with %d grants", len(rows), rows[0].Program, rows[0].Grants)
	}
}

// TestLockMemoryIsBounded: the memory of a meter does not grow with the number of keys.
func TestLockMemoryIsBounded(t *testing.T) {
	l := NewLocks(func(string) string { return "*" }, false)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	visit := func(from, to int) {
		for i := from; i < to; i++ {
			at := time.Duration(i) * time.Millisecond
			for _, kind := range []witness.NoticeKind{
				witness.Refused, witness.Waits, witness.Granted, witness.Released,
			} {
				l.Notice(witness.Notice{Kind: kind, Key: fmt.Sprint("lock:", i), Client: "shop", At: at,
					For: time.Millisecond, Lease: time.Second, Waited: true})
			}
		}
	}
	visit(0, 100_000)
	before := heap()
	visit(100_000, 1_000_000)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d KB more after 900 000 keys more", grown>>10)
	}
	if rows, hot := l.Numbers(1000*time.Second, nil); len(rows) != 1 || rows[0].Grants != 1_000_000 ||
		len(hot) != hotShown {
		t.Errorf("%d rows, %d hot locks", len(rows), len(hot))
	}
}
