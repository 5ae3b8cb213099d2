package locks

import (
	"slices"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Program is a lock that runs in a program of its own, with the protocol of docs/DRIVERS.md. It is plain data, because
// worker processes start the program.
type Program struct {
	Args []string // command line, without a shell
	Env  []string // its whole environment
	// The program's hello.
	Version string
	Certain bool   // after the answer "busy", the call has certainly left nothing on the servers
	Keys    string // the key that the library writes, in which {key} stands for the lock's
	On      []string
	Least   time.Duration // shortest lease that the library can keep; 0 = any
}

// KeyPattern stands for the lock's key in Program.Keys.
const KeyPattern = "{key}"

// Fits tells whether the lock can run on a topology: it has not more sites than the lock can use, and is among those
// that the lock's program names, if it does.
func (s Spec) Fits(t topologies.Spec) bool {
	return s.Sites.Fits(t.Sites) && (s.Sites == NoSite || s.Engine == t.Can().Engine) &&
		(s.Program == nil || slices.Contains(s.Program.On, t.Name))
}

// Written is the key that the lock's library writes for a key.
func (s Spec) Written(key string) string {
	if s.Program == nil {
		return key
	}
	return strings.ReplaceAll(s.Program.Keys, KeyPattern, key)
}

// Until is the end of a lease that was requested at a time, if the lock returns none: the server's lease began at that
// time at the earliest.
func Until(call time.Time, ttl time.Duration) time.Time { return call.Add(ttl - Drift(ttl)) }

// Drift is how much clocks may differ over a TTL: 1 % and 2 ms, as in the Redlock description.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
