package driver

import (
	"fmt"
	"slices"
	"testing"
)

// TestWhatTellsOfAPanic: the first line about a panic and the lines after it are kept, without secrets,
// however the output is split.
func TestWhatTellsOfAPanic(t *testing.T) {
	for text, want := range map[string][]string{
		"panic: boom\n\ngoroutine 7\n":                        {"panic: boom", "", "goroutine 7"},
		"before\nfatal error: all asleep\n":                   {"fatal error: all asleep"},
		"thread 'main' panicked at src/lock.rs:7\n":           {"thread 'main' panicked at src/lock.rs:7"},
		"Exception in thread Thread-3 (renew):\nTraceback\n":  {"Exception in thread Thread-3 (renew):", "Traceback"},
		"(node:1) UnhandledPromiseRejectionWarning: s3cret\n": {"(node:1) UnhandledPromiseRejectionWarning: ***"},
		"a panic: was avoided\nno exception in thread 7\n":    nil,
		"panic: not the end of a line":                        nil,
	} {
		for _, piece := range []int{1, 7, len(text)} {
			var l tail
			l.secret("s3cret")
			for part := range slices.Chunk([]byte(text), piece) {
				if _, err := l.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			if got, at := l.alarmed(); !slices.Equal(got, want) || at.IsZero() != (want == nil) {
				t.Errorf("%q in pieces of %d: got %q", text, piece, got)
			}
		}
	}
	var l tail
	for i := range 100 {
		fmt.Fprintf(&l, "panic: %d\n", i)
	}
	if got, _ := l.alarmed(); len(got) != mostSaid || got[0] != "panic: 0" {
		t.Errorf("got %q", got)
	}
	if got := l.last(); len(got) != mostSaid || got[mostSaid-1] != "panic: 99" {
		t.Errorf("got %q", got)
	}
}
