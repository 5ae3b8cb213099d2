package cli

import (
	"hammerlock/internal/settings"
	"slices"
	"testing"
)

// TestProgramsAsLocks: a command keeps its commas, and is written in the form in which it is read.
func TestProgramsAsLocks(t *testing.T) {
	all := locksOf(Env{}.knows())
	got := all.Join(settings.Split("lease,exec:python3 a.py --x 1,2,'b c',redlock,exec:./d,auto"))
	want := []string{"lease", "exec:python3 a.py --x 1,2,'b c'", "redlock", "exec:./d", "auto"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	lock, err := all.Find(want[1])
	if words := []string{"python3", "a.py", "--x", "1,2,b c"}; err != nil || !slices.Equal(lock.Program.Args, words) {
		t.Fatalf("%q, %v", lock.Program.Args, err)
	}
	if again, err := all.Find(lockName(lock)); err != nil || !slices.Equal(again.Program.Args, lock.Program.Args) {
		t.Errorf("it is written as %s", lockName(lock))
	}
}
