// Package known lists the locks that the commands offer: the locks of package catalogue and rueidislock. It is a
// package of its own because rueidislock needs another Redis client. Programs that test their own lock do not import
// it.
package known

import (
	"slices"

	"hammerlock/locks"
	"hammerlock/locks/catalogue"
)

// Locks lists every lock: correct ones first, then libraries as people use them, then the broken ones.
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
