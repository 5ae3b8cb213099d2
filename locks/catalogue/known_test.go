package catalogue_test

import (
	"testing"

	"hammerlock/locks/catalogue"
	"hammerlock/locks/known"
)

// The tests of this package use every lock of the commands.
var taken = catalogue.Take(known.Locks)

func TestKnownLocksAreFoundByTheirNames(t *testing.T) {
	t.Parallel()
	for _, s := range taken {
		if found, ok := known.Find(s.Name); !ok || found.Name != s.Name {
			t.Errorf("%s is not found by its name", s.Name)
		}
	}
	if _, ok := known.Find("no such lock"); ok {
		t.Error("a lock that is not there is found")
	}
}
