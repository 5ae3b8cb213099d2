// Package history records the operations of a run with their outcomes on one clock, without locks and allocations. It
// hands operations on in the order of their returns, and reads and writes them as files. It uses the standard library
// only and judges nothing.
package history

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID identifies an operation within a run. The upper 24 bits are the lane that recorded it, counted from 1; the lower
// 40 bits are its number in that lane. The zero ID means none.
type ID uint64

const idLaneShift = 40

// Lane is the number of the lane that recorded the operation, from 0; -1 for the zero ID.
func (id ID) Lane() int { return int(id>>idLaneShift) - 1 }

// Number counts the operation in its lane, from 1.
func (id ID) Number() uint64 { return uint64(id) & (1<<idLaneShift - 1) }

// String writes the ID as lane.number.
func (id ID) String() string {
	if id == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%d", id.Lane(), id.Number())
}

// Kind is the type of an operation.
type Kind uint8

const (
	Skip    Kind = iota + 1 // a visit timed out before a worker was free
	Acquire                 // one attempt to get the lock
	Extend                  // one attempt to lengthen the lease of Hold
	Release                 // gives Hold back
	Load                    // reads the counter: Value, and Seen, the operation that stored it
	Store                   // writes the counter: Value, and Seen, the operation with the replaced value
	// a visit ends: Call is its start; Until is the first time at which it was due and its worker free; OK = counted
	End
	Fault // a fault is injected from Call to Return; Value is its index in Header.Faults
	Heal  // a fault is healed from Call to Return; Value is the same as in the Fault
	Lose  // the holder was told at Return that Hold is lost, and relies on it no longer
	Crash // the worker was killed at Call and has no hold from then on
	Found // after the run: node Value has the lock's key with Token; the key expires at Until
	Final // after the run: the page has Value views, written by Seen
	Sight // during the run: node Value has the lock's key with Token; the key expires at Until
	// nothing ran in the process with number Process (Value 1: in the suite itself) from Call to Return: it was paused
	Gap
	Role // node Value changed its role between Call and Return; see Seen
	// the node with number Value ended, did not answer or lost keys from Call to Return, without a planned fault
	Incident
)

var kinds = [...]string{"?", "skip", "acquire", "extend", "release", "load", "store", "end", "fault", "heal", "lose",
	"crash", "found", "final", "sight", "gap", "role", "incident"}

// Visit is the rest of a successful visit after its Acquire, as one operation. The Store was called at Call and
// answered at Released, when the Release was called. Return answers the Release and ends the visit. The visit began at
// Began. Until means the same as in an End. Only measurements use a Visit; files do not contain it.
const Visit Kind = 255

// PartsOfVisit are the kinds of operation that a Visit combines.
var PartsOfVisit = [...]Kind{Store, Release, End}

// Part extracts from a Visit its operation of a given kind, one of PartsOfVisit. It writes the operation to *part
// and returns part.
func (op *Op) Part(kind Kind, part *Op) *Op {
	*part = *op
	part.Kind, part.Began, part.Released = kind, 0, 0
	switch kind {
	case Store:
		part.Return, part.Until = op.Released, 0
	case Release:
		part.Call, part.Until = op.Released, 0
	case End:
		part.Call, part.Hold = op.Began, 0
	}
	if kind != Store {
		part.Value, part.Seen, part.Fence = 0, 0, 0
	}
	return part
}

// String is the kind's name in files and reports.
func (k Kind) String() string {
	if k == Visit {
		return "visit"
	}
	return name(kinds[:], uint8(k))
}

// Outcome is the known effect of an operation; in doubt it is Unknown.
type Outcome uint8

// The outcomes. Failed means: certainly without effect.
const (
	Unknown Outcome = iota
	OK
	Failed
)

var outcomes = [...]string{"unknown", "ok", "failed"}

// String is the outcome's name in files and reports.
func (o Outcome) String() string { return name(outcomes[:], uint8(o)) }

// Reason is the class of error; None for success.
type Reason uint8

// The reasons, harmless ones first. Only the Outcome says whether an effect is possible.
const (
	None        Reason = iota
	Busy               // another worker holds the lock
	Lost               // the lock is no longer ours
	Fenced             // the store refused a stale fencing token
	Conflict           // an optimistic transaction was aborted
	Unreachable        // no connection could be made
	Refused            // the server refused the command: READONLY, CLUSTERDOWN, NOREPLICAS, LOADING, ...
	Quorum             // too few sites agreed
	Expired            // the lease ended before it could be used
	Impatient          // the visit waited for its longest time
	Timeout            // no answer in time
	Dropped            // the connection broke under the command
	Canceled           // the run was aborted
	Crashed            // the worker was killed
	Other
)

var reasons = [...]string{"", "busy", "lost", "fenced", "conflict", "unreachable", "refused", "quorum",
	"expired", "impatient", "timeout", "dropped", "canceled", "crashed", "other"}

// String is the reason's name in files and reports; None is empty.
func (r Reason) String() string { return name(reasons[:], uint8(r)) }

// Forever means no time: the end of a hold without expiry, the return of a call without a return.
const Forever = time.Duration(1<<63 - 1)

// Wake is what made a worker try for the lock.
type Wake uint8

const (
	AtOnce   Wake = iota // first attempt of a visit
	Poll                 // the backoff was over
	Signal               // the lock was notified of a release
	LeaseEnd             // the lock knew when the holder's lease would end
)

var wakes = [...]string{"at-once", "poll", "signal", "lease-end"}

// String is the wake's name in files and reports.
func (w Wake) String() string { return name(wakes[:], uint8(w)) }

// Op is one call and its return on the run's clock. All times count from the start of the run. It has no pointers, so
// that a lane can lie in memory shared between processes.
type Op struct {
	// The first of two cache lines has the fields that a measurement writes after the reply, when the worker may run
	// on another core.
	ID ID
	// the Acquire that this operation belongs to; an outermost Acquire refers to itself, a re-entry to the outermost
	// one
	Hold   ID
	Due    time.Duration // when the visit was due
	Call   time.Duration // before the first byte is sent
	Return time.Duration // after the reply is parsed; Forever if it never came
	Until  time.Duration // Acquire, Extend: the holder may rely on the hold until then; End: see there

	Worker  int32 // -1: the suite itself
	Key     int32 // -1: none
	Process int16 // of the worker; each process has its own clock
	Kind    Kind
	Outcome Outcome
	Reason  Reason
	Woken   Wake // Acquire: what made the worker try
	// Permits is the mode of an Acquire: the number of permits requested; 0 = exclusive, all of them. A reader of a
	// shared lock requests 1.
	Permits uint16

	// Seen depends on the kind. Load and Store: the Store whose value was read. Acquire: the shared hold that an
	// upgrade replaces. Role: the Role by which the new primary of this server was promoted.
	Seen  ID
	Token uint64 // Hash of the token that marks the hold on the servers; 0 = none
	Fence int64  // fencing token; 0 = none
	// Value depends on the kind. Load, Store and Final: page views, but see Status. Fault and Heal: the index in
	// Header.Faults. Acquire and Release of a reentrant lock: how many holds the owner has, as the lock reports.
	// Acquire without a quorum: the number of sites that did not answer.
	Value int64
	TTL   time.Duration // Acquire, Extend: the requested lease; 0 = without expiry

	Released time.Duration // Visit: see there
	Began    time.Duration // Visit: see there

	_ [8]byte
}

// Latency is the time from call to return; Forever without a return.
func (op *Op) Latency() time.Duration {
	if op.Return == Forever {
		return Forever
	}
	return op.Return - op.Call
}

// Status returns the HTTP status of a visit to a service that did not acknowledge it. Such a visit is a Store
// without a hold. Status returns 0 if there was no answer, and for all other operations.
func (op *Op) Status() int {
	if op.Kind != Store || op.Hold != 0 || op.Outcome == OK {
		return 0
	}
	return int(op.Value)
}

// Class names the class of an error by kind, outcome and reason, as in "release unknown other". A status follows
// the reason or replaces the reason Other, as in "store failed refused 503" and "store unknown 500".
func (op *Op) Class() string {
	words := []string{op.Kind.String(), op.Outcome.String(), op.Reason.String()}
	if status := op.Status(); status != 0 {
		if op.Reason == Other {
			words = words[:2]
		}
		words = append(words, strconv.Itoa(status))
	}
	return strings.Join(words, " ")
}

// Refused reports whether the servers answered that another worker has the lock or tries for it at the same time. An
// attempt without a quorum counts as refused if all sites answered.
func (op *Op) Refused() bool { return op.Reason == Busy || op.Reason == Quorum && op.Value == 0 }

// Latest returns the last known time of the operation: its return, or its call if it has no return.
func (op *Op) Latest() time.Duration {
	if op.Return == Forever {
		return op.Call
	}
	return op.Return
}

// Outermost reports whether an acquire begins a new hold and is no re-entry.
func (op *Op) Outermost() bool { return op.Hold == op.ID || op.Hold == 0 }

// Hash maps a lock's token to a number for operations: 64-bit FNV-1a, never 0 for a token.
func Hash(token string) uint64 {
	if token == "" {
		return 0
	}
	h := uint64(14695981039346656037)
	for i := range len(token) {
		h = (h ^ uint64(token[i])) * 1099511628211
	}
	return max(h, 1)
}

func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("?%d", i)
}
