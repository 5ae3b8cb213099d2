package witness

import (
	"fmt"
	"slices"
	"testing"

	"hammerlock/history"
)

// TestDataOfAPool: a client with several connections may use any of them for its data and for its lock. The reader
// notices that if a token comes on another connection than its grant. Then it attributes all data commands to the
// only holder, and accuses no client.
func TestDataOfAPool(t *testing.T) {
	var lines []string
	conns := "ABC"
	for n := range 12 {
		at, c := 1+100*n, func(k int) string { return conns[(n+k)%3 : (n+k)%3+1] }
		lines = append(lines, fmt.Sprintf("%s %d %d SET lock:1 t%d NX PX 90 = OK", c(0), at, at+1, n),
			fmt.Sprintf("! %d SET lock:1 t%d PXAT +%d", at+2, n, at+91),
			fmt.Sprintf("%s %d %d GET n = %d", c(n/2), at+5, at+6, n),
			fmt.Sprintf("%s %d %d SET n %d = OK", c(n/3), at+10, at+11, n+1), fmt.Sprintf("! %d SET n %d", at+11, n+1),
			fmt.Sprintf("%s %d %d %s t%d = 1", c(2*n), at+20, at+21, unlock, n), fmt.Sprintf("! %d DEL lock:1", at+21))
	}
	r, h := told(t, Options{Data: []string{"n"}}, lines...)
	uses := 0
	for _, op := range h.Ops {
		if op.Kind == history.Load || op.Kind == history.Store {
			uses++
		}
	}
	if causes := failed(t, h); len(causes) > 0 || uses != 24 || r.DataLoose > 0 {
		t.Errorf("%d uses, %d loose, %v", uses, r.DataLoose, causes)
	}
}

// TestBlindWrites: if a client without the lock writes a value that it has not read, the value may be based on
// anything. So the data are not judged, unless this is the first value of all.
func TestBlindWrites(t *testing.T) {
	visit := []string{"A 11 12 SET lock:1 a NX PX 90 = OK", "! 13 SET lock:1 a PXAT +101", "A 14 15 GET n = 5",
		"A 16 17 SET n 6 = OK", "! 18 SET n 6", "A 20 21 " + unlock + " a = 1", "! 22 DEL lock:1"}
	first := []string{"B 1 2 SET n 5 = OK", "! 3 SET n 5"}
	for name, c := range map[string]struct {
		lines  []string
		judged bool
	}{
		"the first value": {slices.Concat(first, visit), true},
		"beside the lock": {slices.Concat(first, visit, []string{"B 30 31 SET n 6 = OK", "! 32 SET n 6"}), false},
		"after it was read": {slices.Concat(first, visit, []string{"B 25 26 GET n = 6", "B 30 31 SET n 7 = OK",
			"! 32 SET n 7"}), true},
		"an addition counts": {slices.Concat(first, visit, []string{"B 30 31 INCRBY n 1 = 7",
			"! 32 INCRBY n 1"}), true},
	} {
		r, h := told(t, Options{Data: []string{"n"}}, c.lines...)
		stores := 0
		for _, op := range h.Ops {
			if op.Kind == history.Store {
				stores++
			}
		}
		if causes := failed(t, h); len(causes) > 0 || (stores > 0) != c.judged || (r.DataLoose > 0) == c.judged {
			t.Errorf("%s: %d stores, %d loose, %v", name, stores, r.DataLoose, causes)
		}
	}
}

// TestDataOfAScript: a store that a script makes belongs to no holder. It is counted, and lost updates are not judged.
func TestDataOfAScript(t *testing.T) {
	visit := []string{"A 11 12 SET lock:1 a NX PX 90 = OK", "! 13 SET lock:1 a PXAT +101", "A 14 15 GET n = nil",
		"A 16 17 EVAL s 1 n 6 = OK", "! 17 SET n 6", "A 20 21 " + unlock + " a = 1", "! 22 DEL lock:1"}
	plain := slices.Clone(visit)
	plain[3] = "A 16 18 SET n 6 = OK"
	for _, c := range []struct {
		lines []string
		want  int64
	}{{visit, 1}, {plain, 0}} {
		r, h := told(t, Options{Data: []string{"n"}}, c.lines...)
		if causes := failed(t, h); len(causes) > 0 || r.DataUnrequested != c.want {
			t.Errorf("%d stores that no command explains, want %d; %v", r.DataUnrequested, c.want, causes)
		}
	}
}
