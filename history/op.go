// Package history holds what happened in a run: operations with their outcomes, on one clock.
// It records without locks and without allocations, and hands operations on in the order of
// their returns. It uses the standard library only and judges nothing.
package history

import (
	"fmt"
	"time"
)

// ID names an operation; it is unique in a run. The upper 24 bits are the lane that recorded it
// (counted from 1), the lower 40 bits its number in that lane. The zero ID names nothing.
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

// Kind says what an operation did.
type Kind uint8

// The kinds of operation.
const (
	Skip    Kind = iota + 1 // a visit's patience ended before a worker was free
	Acquire                 // one try to get the lock
	Extend                  // one try to lengthen the lease of Hold
	Release                 // gives Hold back
	Load                    // reads the counter: Value and Seen, the operation that stored it
	Store                   // writes the counter: Value, and Seen, the operation whose value it replaces
	// a visit is over: Call is when it began, Until when it was due and its worker free; OK means counted
	End
	Fault // a fault is injected, from Call to Return; Value is its place in Header.Faults
	Heal  // a fault is healed, from Call to Return; Value is that of the Fault
	Lose  // the holder was told at Return that Hold is lost, and believes in it no longer
	Crash // the worker was killed at Call: it believes in no hold from then on
	Found // after the run the lock's key was found on node number Value: Token, and Until it expires
	Final // after the run: the page has Value views, written by Seen
	Sight // during the run the lock's key was seen on node number Value: Token, and Until it expires
	// process number Process, or the suite itself if Value is 1, was paused from Call to Return: nothing of it ran
	Gap
	Role // node number Value took another role, between Call and Return; see Seen
	// node number Value ended, was silent or lost keys from Call to Return, without a planned fault
	Incident
)

var kinds = [...]string{"?", "skip", "acquire", "extend", "release", "load", "store", "end", "fault", "heal", "lose",
	"crash", "found", "final", "sight", "gap", "role", "incident"}

// Visit stands for all that follows the Acquire of a visit that went well: the Store was called at Call and answered at
// Released, when the Release was called; Return is the answer to that and the end of the visit. It began at Began;
// Until is End's. Only measurements use it; it never stands in a file.
const Visit Kind = 255

// PartsOfVisit are the kinds of the operations that a Visit stands for.
var PartsOfVisit = [...]Kind{Store, Release, End}

// Part makes one of the operations that a Visit stands for, in place of what was in part.
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

// Outcome says what is known of an operation's effect. In doubt it is Unknown.
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

// Reason is the class of what went wrong; None for an operation that went well.
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
	Expired            // the lease was over before it could be used
	Impatient          // the visit waited as long as it may
	Timeout            // no answer in time
	Dropped            // the connection broke under the command
	Canceled           // the run was aborted
	Crashed            // the worker was killed
	Other              // anything else
)

var reasons = [...]string{"", "busy", "lost", "fenced", "conflict", "unreachable", "refused", "quorum",
	"expired", "impatient", "timeout", "dropped", "canceled", "crashed", "other"}

// String is the reason's name in files and reports; None is empty.
func (r Reason) String() string { return name(reasons[:], uint8(r)) }

// Forever stands for no time: the end of a hold without expiry, the return of a call that had none.
const Forever = time.Duration(1<<63 - 1)

// Wake says what made a worker try for the lock.
type Wake uint8

// The wakes.
const (
	AtOnce   Wake = iota // the first try of a visit
	Poll                 // the backoff was over
	Signal               // the lock was notified that the holder released
	LeaseEnd             // the lock knew when the holder's lease would end
)

var wakes = [...]string{"at-once", "poll", "signal", "lease-end"}

// String is the wake's name in files and reports.
func (w Wake) String() string { return name(wakes[:], uint8(w)) }

// Op is one call and its return on the run's clock. All times count from the start of the run.
// It holds no pointers, so that a lane can live in memory shared between processes.
type Op struct {
	// The first of two cache lines has what a measurement writes after the reply, when the worker may run on another
	// core.
	ID ID
	// the Acquire that this operation belongs to; an outermost Acquire names itself, a re-entry the outermost
	Hold   ID
	Due    time.Duration // when the visit was due
	Call   time.Duration // before the first byte leaves
	Return time.Duration // after the reply is parsed; Forever if it never came
	Until  time.Duration // Acquire, Extend: its holder may believe in the hold before then; End: see there

	Worker  int32 // -1: the suite itself
	Key     int32 // -1: none
	Process int16 // of the worker; a process has a clock of its own
	Kind    Kind
	Outcome Outcome
	Reason  Reason
	Woken   Wake // Acquire: what made the worker try
	// Permits is the mode of an Acquire: of how many of the lock's permits it asks for; 0 = exclusive, all of them. A
	// reader of a lock that readers share asks for 1.
	Permits uint16

	// Seen is, of a Load or Store: the Store whose value was read; of an Acquire: the shared hold that it takes the
	// place of, by an upgrade; of a Role: the Role by which the server that it is a replica of now had become primary.
	Seen  ID
	Token uint64 // Hash of the token that marks the hold in the servers; 0 = none
	Fence int64  // fencing token; 0 = none
	// Value is, of Load, Store, Final: page views; of Fault, Heal: the place in Header.Faults; of Acquire and Release
	// of a
	// reentrant lock: the holds the owner has then, as the lock says; of an Acquire without a quorum: the sites that
	// did
	// not answer.
	Value int64
	TTL   time.Duration // Acquire, Extend: the lease that was asked for; 0 = without expiry

	Released time.Duration // Visit: see there
	Began    time.Duration // Visit: see there

	_ [8]byte
}

// Latency is the time from call to return; Forever if the return never came.
func (op *Op) Latency() time.Duration {
	if op.Return == Forever {
		return Forever
	}
	return op.Return - op.Call
}

// Refused tells whether the servers answered that another worker has the lock, or tries for it at the same time: a try
// that found no quorum is refused if all sites answered.
func (op *Op) Refused() bool { return op.Reason == Busy || op.Reason == Quorum && op.Value == 0 }

// Latest is the last time that is known of the operation: its return, or its call if it never returned.
func (op *Op) Latest() time.Duration {
	if op.Return == Forever {
		return op.Call
	}
	return op.Return
}

// Outermost tells whether an acquire begins a hold of its own, and does not enter one again.
func (op *Op) Outermost() bool { return op.Hold == op.ID || op.Hold == 0 }

// Hash is the number that stands for a lock's token in operations: 64-bit FNV-1a, never 0 for a token.
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
