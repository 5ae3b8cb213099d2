package locks

import (
	"slices"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Program is a lock that runs in an external program, with the protocol of docs/DRIVERS.md. It is plain data, because
// worker processes start the program.
type Program struct {
	Args []string // command line, without a shell
	Env  []string // the whole environment of the program
	// The other fields are from the program's hello message.
	Version string
	Certain bool   // after the answer "busy", the call has certainly left nothing on the servers
	Keys    string // the key that the library writes; {key} stands for the lock's key
	On      []string
	Least   time.Duration // shortest lease that the library supports; 0 = any
}

const KeyPattern = "{key}"

// Fits tells whether the lock can run on a topology. The number of sites and the engine must suit the lock, and a
// Program must list the topology.
func (s Spec) Fits(t topologies.Spec) bool {
	return s.Sites.Fits(t.Sites) && (s.Sites == NoSite || s.Engine == t.Can().Engine) &&
		(s.Program == nil || slices.Contains(s.Program.On, t.Name))
}

// Written returns the key that the lock's library writes for the lock's key.
func (s Spec) Written(key string) string {
	if s.Program == nil {
		return key
	}
	return strings.ReplaceAll(s.Program.Keys, KeyPattern, key)
}

// Until returns the end of a lease for a lock that does not report it. The argument call is the time of the request:
// the server's lease began then or later.
func Until(call time.Time, ttl time.Duration) time.Time { return call.Add(ttl - Drift(ttl)) }

// Drift is the largest difference between clocks over a TTL that the locks allow: 1 % and 2 ms, as in the Redlock
// description.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
