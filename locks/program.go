package locks

import (
	"slices"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Program is a lock that lives in a program of its own, behind the protocol of docs/DRIVERS.md. It is plain data:
// whoever runs the lock's workers starts the program.
type Program struct {
	Args []string // the command, which no shell reads
	Env  []string // its whole environment
	// The program's hello.
	Version string
	Certain bool   // who is told that the lock is busy has certainly left nothing in the servers
	Keys    string // the key that the library writes, where {key} stands for the lock's
	On      []string
	Least   time.Duration // the shortest lease that the library can keep; 0 = any
}

// KeyPattern stands for the lock's key in Program.Keys.
const KeyPattern = "{key}"

// Fits tells whether the lock can live on a topology: it has no more sites than the lock can use, and is one of those
// that its program names, if it has one.
func (s Spec) Fits(t topologies.Spec) bool {
	return s.Sites.Fits(t.Sites) && (s.Sites == NoSite || s.Engine == t.Can().Engine) &&
		(s.Program == nil || slices.Contains(s.Program.On, t.Name))
}

// Written is the key that the lock's library writes for a lock's key.
func (s Spec) Written(key string) string {
	if s.Program == nil {
		return key
	}
	return strings.ReplaceAll(s.Program.Keys, KeyPattern, key)
}

// Until is the end of a lease that was asked for at the time of the call, if its lock names none: the server's lease
// began at the earliest then.
func Until(call time.Time, ttl time.Duration) time.Time { return call.Add(ttl - Drift(ttl)) }

// Drift is what clocks may differ over a TTL: 1 % and 2 ms, as the Redlock description counts it.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
