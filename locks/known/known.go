// Package known lists the locks that the commands offer: the locks of package catalogue, and rueidislock.
// rueidislock is not in package catalogue, because it needs another Redis client. So programs that test their own
// lock need not import that client.
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

// Find returns the Spec with this name; false = the name is unknown.
func Find(name string) (locks.Spec, bool) {
	for i := range Locks {
		if Locks[i].Name == name {
			return Locks[i], true
		}
	}
	return locks.Spec{}, false
}
