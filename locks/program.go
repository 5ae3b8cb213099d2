package locks

import (
	"slices"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Program is a lock that runs in an external program, which speaks the protocol of docs/DRIVERS.md. Worker processes
// receive this plain data and start the program.
type Program struct {
	Args []string // command line, without a shell
	Env  []string // the whole environment of the program
	// The other fields are from the program's hello message.
	Version string
	Certain bool   // an answer "busy" proves that the call has left no key on the servers
	Keys    string // the key that the library writes; {key} stands for the lock's key
	On      []string
	Least   time.Duration // shortest lease that the library supports; 0 = any
}

const KeyPattern = "{key}"

// Fits reports whether the lock can run on the topology: the number of sites and the engine suit the lock. If the
// lock is a Program, the program must also list the topology.
func (s Spec) Fits(t topologies.Spec) bool {
	return s.Sites.Fits(t.Sites) && (s.Sites == NoSite || s.Engine == t.Can().Engine) &&
		(s.Program == nil || slices.Contains(s.Program.On, t.Name))
}

// Written returns the name under which the lock stores a key on the server.
func (s Spec) Written(key string) string {
	if s.Program == nil {
		return key
	}
	return strings.ReplaceAll(s.Program.Keys, KeyPattern, key)
}

// Until returns the deadline for a lock that reports no deadline itself. The lease is assumed to begin at the time
// call, when the request was sent; the server's lease began then or later.
func Until(call time.Time, ttl time.Duration) time.Time { return call.Add(ttl - Drift(ttl)) }

// Drift is the allowance for differences between clocks during a lease: 1 % of the TTL and 2 ms, as in the Redlock
// description.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
