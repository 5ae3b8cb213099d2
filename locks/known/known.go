// Package known is the list of locks for the commands: those of locks/catalogue, and rueidislock, whose library has
// its own client. A program that imports the suite to test its own lock does not need this package.
package known

import (
	"slices"

	"hammerlock/locks"
	"hammerlock/locks/catalogue"
)

// Locks lists all locks: correct ones, then libraries, then broken ones.
var Locks = slices.Insert(slices.Clone(catalogue.All),
	slices.IndexFunc(catalogue.All, func(s locks.Spec) bool { return s.Broken != "" }), libRueidislock,
	libRueidislockNoLoop)

// Find returns the spec with that name.
func Find(name string) (locks.Spec, bool) {
	for i := range Locks {
		if Locks[i].Name == name {
			return Locks[i], true
		}
	}
	return locks.Spec{}, false
}
