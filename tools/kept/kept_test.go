package kept

import (
	"slices"
	"strings"
	"testing"
)

// TestEachMutantIsOfAKnownClass: the file is written by people, too.
func TestEachMutantIsOfAKnownClass(t *testing.T) {
	t.Chdir("../..")
	mutants, err := ReadLines[Mutant](MutantsFile)
	if err != nil || len(mutants) == 0 {
		t.Fatalf("%d mutants, %v", len(mutants), err)
	}
	for _, r := range mutants {
		if !slices.Contains([]string{"", Equivalent, ByDesign, Hole}, r.Class) || (r.Class == "") != (r.Why == "") {
			t.Errorf("%s: %s: class %q, why %q", r.Lock, r.After, r.Class, r.Why)
		}
	}
}

func TestALineSaysWhenAndOfWhat(t *testing.T) {
	for want, all := range map[string][]Made{
		"Not measured yet.\n": nil,
		"Measured on 2026-11-24, of commit 0123abc, on 2 cores.\n": {{"2026-11-24", "0123abc", 2},
			{"2026-11-24", "0123abc", 2}},
		"Measured from 2026-11-22 to 2026-11-24, of commits a, b+, on 2 or 8 cores.\n": {{"2026-11-24", "b+", 8},
			{"2026-11-22", "a", 2}},
		"Measured on 2026-11-24, of a commit that was not noted.\n": {{Day: "2026-11-24"}},
		"Measured from 2026-11-19 to 2026-11-24, of 7 commits, the last a.\n": {{"2026-11-24", "a", 0},
			{"2026-11-23", "b", 0}, {"2026-11-22", "c", 0}, {"2026-11-21", "d", 0}, {"2026-11-20", "e", 0},
			{"2026-11-19", "f", 0}, {"2026-11-19", "g", 0}},
	} {
		if got := Line(all...); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	m, err := Now(t.Context())
	if err != nil || len(m.Commit) < 7 || m.Cores < 1 || m.Day < "2026" {
		t.Errorf("now: %+v, %v", m, err)
	}
}

// TestPutChangesTheNamedParts: other parts stay as they are.
func TestPutChangesTheNamedParts(t *testing.T) {
	const old = "a\n<!-- generated: one -->\nold\n<!-- end -->\nb\n<!-- generated: two -->\nstays\n<!-- end -->\n"
	got, err := Put(old, map[string]string{"one": "new $1\n"})
	if want := strings.Replace(old, "old", "new $1", 1); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Put(old, map[string]string{"three": ""}); err == nil {
		t.Error("a part that there is not was put")
	}
}
