package witness

import (
	"slices"
	"strings"
	"testing"
)

// TestPageNames: names are in the order of their numbers. A text that is cut has a mark.
func TestPageNames(t *testing.T) {
	long := strings.Repeat("ä", nameLength+1)
	got := pageNames(map[string]int32{"b": 1, "a": 0, "\xff": 2, long: 3}, func(s string) string { return s })
	if want := []string{"a", "b", `"\xff"`, long[:2*nameLength] + "…"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := short("0123456789abc") + short("one"); got != `"0123456789ab…""one"` {
		t.Errorf("got %s", got)
	}
}
