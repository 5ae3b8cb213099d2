package human

import (
	"testing"

	"pgregory.net/rapid"
)

func TestMeant(t *testing.T) {
	good := []string{"single", "replica", "sentinel", "lease", "none", "kill-primary"}
	for name, want := range map[string]string{
		"singel": "single", "leese": "lease", "nope": "", "noen": "none", "non": "none", "kil-primary": "kill-primary",
		"senti": "sentinel", "lease": "lease",
		"x": "", "a": "", "": "", "quorum": "", "se": "", "on": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got := Meant(name, good); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := Instead("leese", good[3:5]); got != "there is lease, none; did you mean lease?" {
		t.Errorf("got %q", got)
	}
}

// TestDistanceIsThatOfItsDefinition compares distance with the recursive definition.
func TestDistanceIsThatOfItsDefinition(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		replaced := slow(a[1:], b[1:])
		if a[0] != b[0] {
			replaced++
		}
		least := min(1+slow(a[1:], b), 1+slow(a, b[1:]), replaced)
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			least = min(least, 1+slow(a[2:], b[2:]))
		}
		return least
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := distance(a, b), slow(a, b); got != want {
			t.Fatalf("%q, %q: got %d, want %d", a, b, got, want)
		}
	})
}
