// Package known is the catalogue of the commands: the locks of package locks, and rueidislock, whose library brings a
// client of its own. Who has a lock of his own tested, and imports the suite for that, does without it.
package known

import (
	"slices"

	"hammerlock/locks"
	"hammerlock/locks/catalogue"
)

// Locks lists every lock: right ones first, then libraries as people use them, then the wrong ones.
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
