package history

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// maxProblems limits the list of problems, because a wrong file may have a problem in every operation.
const maxProblems = 10

// problem is a statement in a history that cannot be true.
type problem struct {
	Index int // into Ops; -1 for the header and the notes
	ID    ID
	Line  int // line in its JSON lines file, from 1; 0 if it has none
	What  string
}

// problemList is the error of an invalid history, with the first problems.
type problemList []problem

func (p problemList) Error() string {
	var b strings.Builder
	for i, p := range p {
		if i > 0 {
			b.WriteString("\n")
		}
		switch {
		case p.Line > 0:
			fmt.Fprintf(&b, "line %d: ", p.Line)
		case p.Index < 0:
			b.WriteString("header: ")
		}
		if p.Index >= 0 {
			fmt.Fprintf(&b, "operation %d (%s): ", p.Index, p.ID)
		}
		b.WriteString(p.What)
	}
	return b.String()
}

// Validate returns an error with up to ten problems if the history is invalid and cannot be judged. It runs in
// near-linear time and takes four bytes per operation.
func (h *History) Validate() error {
	v := validation{h: h, space: h.Space.Beside(), asked: map[int32]*Op{}}
	defer v.space.Free()
	v.header()
	v.operations()
	v.references()
	if len(v.problems) > 0 {
		return v.problems
	}
	return nil
}

type validation struct {
	h        *History
	space    Space
	ids      Index           // index of the operation, plus one
	returned []time.Duration // by lane: return of the last call
	asked    map[int32]*Op   // by caller: the last acquire, if callers take several pages in one call
	problems problemList
}

func (v *validation) full() bool { return len(v.problems) >= maxProblems }

func (v *validation) add(i int, format string, args ...any) {
	if v.full() {
		return
	}
	p := problem{Index: i, What: fmt.Sprintf(format, args...)}
	if i >= 0 {
		p.ID = v.h.Ops[i].ID
	}
	v.problems = append(v.problems, p)
}

func (v *validation) header() {
	h := &v.h.Header
	const most = 1 << 24 // lanes have 24 bits
	for _, n := range []struct {
		name string
		n    int
		most int
	}{{"workers", h.Workers, most}, {"callers", h.Callers, h.Workers}, {"processes", h.Processes, math.MaxInt16},
		{"keys", h.Keys, math.MaxInt32}, {"permits", h.Claims.Permits, math.MaxUint16},
		{"sites", h.Sites, math.MaxInt16}, {"nodes", h.Nodes, math.MaxInt16}} {
		if n.n < 0 || n.n > n.most {
			v.add(-1, "%d %s, between 0 and %d are possible", n.n, n.name, n.most)
		}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
		most time.Duration
	}{
		{"retry", h.Retry, Forever}, {"wait", h.Wait, Forever},
		{"slack of the clocks", h.Bounds.Slack, 2 * MaxDoubt},
		{"rounding of the servers' clocks", h.Bounds.Round, time.Hour},
		{"recovery", h.Bounds.Recovery, time.Hour}, {"idle time of a lock", h.Bounds.Idle, time.Hour},
		{"gap that is recorded", h.Bounds.Gap, Forever},
		{"time by which leases linger", h.Bounds.Linger, 366 * 24 * time.Hour},
	} {
		if d.d < 0 || d.d > d.most {
			v.add(-1, "%s of %v, between 0 and %v are possible", d.name, d.d, d.most)
		}
	}
	if r := h.Bounds.Rate; !(r >= 0 && r <= 0.5) {
		v.add(-1, "rate of the servers' clocks of %v, between 0 and 0.5 are possible", r)
	}
	if n := len(h.Bounds.Doubts); n > 0 && n < h.Processes {
		v.add(-1, "what is known of %d clocks of %d processes", n, h.Processes)
	}
	for p, d := range h.Bounds.Doubts {
		if d.Machine < 0 || d.Machine > math.MaxInt16 || min(d.Own, d.Offset) < 0 || max(d.Own, d.Offset) > MaxDoubt {
			v.add(-1, "impossible doubt of the clock of process %d: machine %d, %v and %v", p, d.Machine, d.Own,
				d.Offset)
		}
	}
	for i, f := range h.Faults {
		for _, what := range f.mistakes() {
			v.add(-1, "fault %d, %s, %s", i, f.Name, what)
		}
	}
}

// operations checks each operation alone, and against the operation before it in its lane. Operations are in the order
// of their returns, so a lane is free of overlaps if each call begins after the return before it.
func (v *validation) operations() {
	v.index()
	var prev time.Duration
	for i := range v.h.Ops {
		if v.full() {
			return
		}
		op := &v.h.Ops[i]
		if !plain(op, &v.h.Header) {
			v.explain(i, op)
		}
		if op.Return < prev {
			v.add(i, "returns at %v, after one that returned at %v", op.Return, prev)
		}
		prev = op.Return
		lane := v.enter(i, op)
		if lane < 0 || op.Kind < Acquire || op.Kind > Store { // the others are no calls
			continue
		}
		if op.Call < v.returned[lane] {
			if v.returned[lane] == Forever {
				v.add(i, "is called at %v, in a lane with a call that never returned", op.Call)
			} else {
				v.add(i, "is called at %v, while the one before in its lane returns at %v", op.Call, v.returned[lane])
			}
		}
		v.returned[lane] = op.Return
		v.together(i, op)
	}
}

// together checks that the acquires of a call for several pages have one outcome. A process that was killed may have
// recorded some of them only.
func (v *validation) together(i int, op *Op) {
	if v.h.Callers == 0 || op.Kind != Acquire || op.Worker < 0 {
		return
	}
	who := v.h.Caller(op.Worker)
	last := v.asked[who]
	if last != nil && op.Call < last.Return && op.Outcome != last.Outcome && min(op.Outcome, last.Outcome) != Unknown {
		v.add(i, "is %s, and %s of the same call for several pages is %s", op.Outcome, last.ID, last.Outcome)
	}
	v.asked[who] = op
}

// possible reports whether a lane can have given this ID. Lanes number their operations from 1, without large gaps.
func (v *validation) possible(id ID) bool {
	most := 4*len(v.h.Ops) + 1024
	return id.Lane() >= 0 && id.Number() > 0 && id.Lane() <= most && id.Number() <= uint64(most)
}

// index makes room for all possible IDs.
func (v *validation) index() {
	var spans Spans
	for i := range v.h.Ops {
		if id := v.h.Ops[i].ID; v.possible(id) {
			spans.Add(id)
		}
	}
	v.ids, v.returned = spans.Index(&v.space), make([]time.Duration, len(spans))
}

// enter registers an operation's ID and returns its lane; -1 if the ID is impossible.
func (v *validation) enter(i int, op *Op) int {
	if !v.possible(op.ID) {
		v.add(i, "impossible id: there are %d operations", len(v.h.Ops))
		return -1
	}
	place := v.ids.Place(op.ID)
	if *place != 0 {
		v.add(i, "its id was used before")
	}
	*place = int32(i) + 1
	return op.ID.Lane()
}

// op is the operation with an ID; nil if there is none.
func (v *validation) op(id ID) *Op {
	if place := v.ids.Find(id); place > 0 {
		return &v.h.Ops[place-1]
	}
	return nil
}

// references checks each reference of an operation to another one. In a partial history, the other operation
// may be missing.
func (v *validation) references() {
	stored := map[int32]time.Duration{} // by key: call of the last store that may have taken effect
	var finals []int
	for i := range v.h.Ops {
		if v.full() {
			return
		}
		op := &v.h.Ops[i]
		if op.Kind == Store && op.Outcome != Failed {
			stored[op.Key] = max(stored[op.Key], op.Call)
		} else if op.Kind == Final && op.Outcome == OK {
			finals = append(finals, i)
		}
		if op.Hold != 0 && op.Hold != op.ID {
			v.held(i, op)
		} else if op.Hold != 0 && op.Kind != Acquire {
			v.add(i, "is its own hold but not an acquire")
		}
		if op.Seen != 0 && op.Kind == Acquire {
			v.upgraded(i, op)
		} else if op.Seen != 0 {
			v.saw(i, op)
		}
	}
	for _, i := range finals {
		if op := &v.h.Ops[i]; stored[op.Key] > op.Return+v.h.Bounds.Slack {
			v.add(i, "was read at %v, and a store was called at %v: that is not the end", op.Return, stored[op.Key])
		}
	}
	for id := range v.h.Notes {
		if v.op(id) == nil {
			v.add(-1, "a note on %s, which is not there", id)
		}
	}
}

// lost reports whether a partial history may have lost an operation.
func (v *validation) lost(id ID) bool {
	return v.h.Partial != "" && v.op(id) == nil && id.Lane() >= 0 && id.Number() > 0
}

// before reports whether the time t of operation a was certainly before the time u of operation b, in spite of the
// errors of their clocks.
func (v *validation) before(t time.Duration, a *Op, u time.Duration, b *Op) bool {
	return t < u-v.h.Bounds.Between(a.Process, b.Process)
}

func (v *validation) held(i int, op *Op) {
	switch hold := v.op(op.Hold); {
	case hold == nil && v.lost(op.Hold):
	case hold == nil || hold.Kind != Acquire:
		v.add(i, "its hold %s is not an acquire", op.Hold)
	case op.Key >= 0 && hold.Key >= 0 && op.Key != hold.Key:
		v.add(i, "is of page %d, its hold %s is of page %d", op.Key, op.Hold, hold.Key)
	case v.before(op.Call, op, hold.Call, hold):
		v.add(i, "is called at %v, before its hold %s was asked for at %v", op.Call, op.Hold, hold.Call)
	}
}

func (v *validation) saw(i int, op *Op) {
	switch store := v.op(op.Seen); {
	case store == nil && v.lost(op.Seen):
	case op.Kind == Role && store != nil && store.Kind == Role && store.Value != op.Value:
	case op.Kind == Role:
		v.add(i, "follows %s, which is not the role of another server", op.Seen)
	case store == nil || store.Kind != Store:
		v.add(i, "has seen %s, which is not a store", op.Seen)
	case op.Key >= 0 && store.Key >= 0 && op.Key != store.Key:
		v.add(i, "is of page %d, and has seen %s of page %d", op.Key, op.Seen, store.Key)
	case v.before(op.Return, op, store.Call, store):
		v.add(i, "returned at %v and has seen %s, which was called at %v", op.Return, op.Seen, store.Call)
	}
}

// upgraded checks an acquire that replaces a hold.
func (v *validation) upgraded(i int, op *Op) {
	switch hold := v.op(op.Seen); {
	case hold == nil && v.lost(op.Seen):
	case hold == nil || hold.Kind != Acquire || hold.Permits == 0 || op.Permits != 0:
		v.add(i, "takes the place of %s, which is not a shared hold that it makes exclusive", op.Seen)
	case hold.Key != op.Key || hold.Worker != op.Worker:
		v.add(i, "takes the place of %s, which is another worker's, or of another page", op.Seen)
	}
}

// plain reports whether an operation is valid, without regard to other operations.
func plain(op *Op, h *Header) bool {
	return op.Kind >= Skip && int(op.Kind) < len(kinds) && int(op.Outcome) < len(outcomes) &&
		int(op.Reason) < len(reasons) && int(op.Woken) < len(wakes) &&
		op.Due|op.Call|op.Until|op.TTL >= 0 && op.Return >= op.Call && op.Call < Forever &&
		uint32(op.Worker+1) <= uint32(h.Workers) && uint32(op.Key+1) <= uint32(h.Keys) &&
		op.Process >= 0 && int(op.Process) < max(h.Processes, 1) &&
		!(op.Return == Forever && op.Outcome != Unknown) && (op.Permits == 0 || shareable(op, h)) &&
		!(op.Until != 0 && op.Until < op.Call && (op.Kind == Acquire || op.Kind == Extend)) &&
		!((op.Kind == Fault || op.Kind == Heal) && uint64(op.Value) >= uint64(len(h.Faults)))
}

// shareable reports whether an operation can request permits.
func shareable(op *Op, h *Header) bool {
	return op.Kind == Acquire && (h.Claims.Permits == 0 || int(op.Permits) <= h.Claims.Permits)
}

// explain adds the reasons why the function plain rejects an operation.
func (v *validation) explain(i int, op *Op) {
	h := &v.h.Header
	for _, p := range []struct {
		wrong bool
		what  string
	}{
		{op.Kind < Skip || int(op.Kind) >= len(kinds), fmt.Sprintf("unknown kind %d", op.Kind)},
		{int(op.Outcome) >= len(outcomes), fmt.Sprintf("unknown outcome %d", op.Outcome)},
		{int(op.Reason) >= len(reasons), fmt.Sprintf("unknown reason %d", op.Reason)},
		{int(op.Woken) >= len(wakes), fmt.Sprintf("unknown wake %d", op.Woken)},
		{op.Due < 0, fmt.Sprintf("was due at the negative time %v", op.Due)},
		{op.Call < 0, fmt.Sprintf("was called at the negative time %v", op.Call)},
		{op.Call == Forever, "was never called"},
		{op.Return < 0, fmt.Sprintf("returned at the negative time %v", op.Return)},
		{op.Until < 0, fmt.Sprintf("holds until the negative time %v", op.Until)},
		{op.TTL < 0, fmt.Sprintf("negative TTL %v", op.TTL)},
		{op.Return < op.Call, fmt.Sprintf("returned at %v, before its call at %v", op.Return, op.Call)},
		{uint32(op.Worker+1) > uint32(h.Workers), fmt.Sprintf("worker %d of %d", op.Worker, h.Workers)},
		{uint32(op.Key+1) > uint32(h.Keys), fmt.Sprintf("key %d of %d", op.Key, h.Keys)},
		{op.Process < 0 || int(op.Process) >= max(h.Processes, 1),
			fmt.Sprintf("process %d of %d", op.Process, max(h.Processes, 1))},
		{op.Return == Forever && op.Outcome != Unknown,
			fmt.Sprintf("never returned, but its outcome is %s", op.Outcome)},
		{op.Until != 0 && op.Until < op.Call && (op.Kind == Acquire || op.Kind == Extend),
			fmt.Sprintf("holds until %v, before its call at %v", op.Until, op.Call)},
		{op.Permits > 0 && !shareable(op, h), fmt.Sprintf("asks for %d permits of %d", op.Permits, h.Claims.Permits)},
		{(op.Kind == Fault || op.Kind == Heal) && uint64(op.Value) >= uint64(len(h.Faults)),
			fmt.Sprintf("is fault %d of %d, counted from 0", op.Value, len(h.Faults))},
	} {
		if p.wrong {
			v.add(i, "%s", p.what)
		}
	}
}
