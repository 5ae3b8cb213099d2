package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// chains writes the chain of each page, if it is complete. A chain has the stores that led to the final value: each
// store replaced the one before it.
func (x *certificate) chains() {
	x.chained, x.finals, x.place = make([]bool, x.keys), make([]int32, x.keys), make([]int32, len(x.Ops))
	stores := make([]bool, x.keys)
	for i := range x.Ops {
		switch op := &x.Ops[i]; {
		case op.Key < 0:
		case op.Kind == history.Store:
			stores[op.Key] = stores[op.Key] || op.Outcome != history.Failed
		case op.Kind == history.Final && op.Outcome == history.OK:
			x.finals[op.Key] = int32(i) + 1
		}
	}
	for k, i := range x.finals {
		if i == 0 || x.Ops[i-1].Seen == 0 {
			x.chained[k] = !stores[k]
			continue
		}
		if n := x.chain(x.Ops[i-1].Seen, int32(k)); n > 0 {
			x.chained[k] = true
			x.put(struct {
				Page   int    `json:"page"`
				Chain  string `json:"chain"`
				Stores int    `json:"stores"`
			}{k, x.id(x.at(x.Ops[i-1].Seen)), n})
		}
	}
}

// chain numbers the stores of a page's chain, beginning with the last store, and returns how many there are; 0 if the
// chain is not complete.
func (x *certificate) chain(end history.ID, key int32) (n int) {
	for id := end; id != 0; {
		at := x.at(id)
		if at < 0 || n > len(x.Ops) {
			return 0
		}
		op := &x.Ops[at]
		if op.Kind != history.Store || op.Key != key || blank(op) {
			return 0
		}
		n++
		id, x.place[at] = op.Seen, int32(n)
	}
	return n
}

// finished tells whether a page's chain was written, or is certainly empty: the read at the end names no store, and has
// a number that no store had.
func (x *certificate) finished(key int32) bool {
	i := x.finals[key]
	return i > 0 && (x.chained[key] || x.Ops[i-1].Seen == 0 && !slices.ContainsFunc(x.Ops, func(op history.Op) bool {
		return op.Kind == history.Store && op.Key == key && op.Value == x.Ops[i-1].Value
	}))
}

// noProof is the reason for causes that have no formula.
const noProof = "there is no proof of that cause yet"

// failed returns the proof of a verdict that failed.
func (x *certificate) failed(v *Verdict) (name string, of []int32, why string) {
	var evidence []int32
	for i := range v.Evidence {
		evidence = append(evidence, x.at(v.Evidence[i].ID))
	}
	if len(evidence) == 0 {
		return "", nil, "there is no evidence"
	}
	switch v.Checker {
	case Exclusion.Name, linearizable.Name, release.Name:
		if name, of = x.together(v.Cause, evidence); v.Checker == release.Name && name != "core" {
			name = "" // the holders' belief says nothing about the answers to releases
		}
	case leaseValidity.Name:
		name, of = x.lease(v.Cause, evidence)
	case fencing.Name:
		if name, of = "fence", evidence; x.Ops[evidence[len(evidence)-1]].Outcome == history.Unknown {
			name = "" // what a page shows at its end is more than a formula
		}
	case lostUpdates.Name:
		name, of = x.lost(evidence)
	case liveness.Name:
		name, of = x.left(v.Cause, evidence)
	}
	if name == "" {
		return "", nil, noProof
	}
	if w := x.near(of); w != nil && name != "core" && name != "claim" {
		return "", nil, "why " + x.id(w.op) + " explains nothing is more than a formula"
	}
	return name, of, ""
}

// near returns an unplanned event of a server that was in force at the time of the given operations; nil if
// none exists.
func (x *certificate) near(of []int32) *window {
	from, to := history.Forever, time.Duration(0)
	for _, n := range of {
		from, to = min(from, x.Ops[n].Call), max(to, x.Ops[n].Latest())
	}
	for _, w := range x.servers {
		reaches := w.from <= plus(to, x.Bounds.Slack) && plus(w.to, x.Bounds.Slack) >= from
		if reaches && !w.fault && w.effect != counting {
			return w
		}
	}
	return nil
}

// together proves that holds overlapped although they exclude each other, or that answers contradict each other.
func (x *certificate) together(cause string, evidence []int32) (string, []int32) {
	var acquires []int32
	for _, n := range evidence {
		if op := &x.Ops[n]; op.Kind == history.Acquire && op.Outermost() {
			acquires = append(acquires, n)
		}
	}
	switch {
	case cause == history.Phantom || cause == history.PartKept:
		return x.left(cause, evidence)
	case cause == history.Overrun && len(acquires) == 2:
		if list := x.overran(acquires, evidence); list != nil {
			return "use", list
		}
	}
	if name, of := x.core(evidence); name != "" {
		return name, of
	}
	if len(acquires) == 2 && x.believe(acquires) {
		return "belief", acquires
	}
	return "", nil
}

// overran returns the Acquires of two holds and the late store of the first hold. The store came after the first hold
// had ended and the other hold had begun. It returns nil if no such store exists.
func (x *certificate) overran(acquires, evidence []int32) []int32 {
	a, b := x.hold(x.Ops[acquires[0]].ID), x.hold(x.Ops[acquires[1]].ID)
	i := a.use(x.Case)
	if i < 0 || !slices.Contains(evidence, i) || x.Fenced || x.Ops[i].Outcome == history.Failed || x.doubts(a) {
		return nil
	}
	_, end := a.believed()
	from, to := b.believed()
	slack, begin, store := x.slack(a.Process, b.Process), end, &x.Ops[i]
	for k := range x.Ops {
		if op := &x.Ops[k]; op.Kind == history.Load && op.Hold == store.Hold && op.Call < store.Call {
			begin = max(begin, op.Call)
		}
	}
	if store.Call > end && from >= end-slack && plus(from, slack) < store.Call && plus(begin, slack) < to {
		return append(acquires, i)
	}
	return nil
}

// doubts reports whether the process of a hold was paused between grant and store, which may excuse the store.
func (x *certificate) doubts(h *hold) bool {
	return slices.ContainsFunc(x.windows, func(w window) bool {
		op := &x.Ops[w.op]
		return op.Kind == history.Gap && op.Process == h.Process && op.Call <= h.stored && op.Return >= h.Return
	})
}

// doubt is the largest error of the clock of an operation's process.
func (x *certificate) doubt(op *history.Op) time.Duration {
	return x.sweeper.half(&hold{Process: op.Process})
}

// believe tells whether holders certainly relied on the lock at the same time.
func (x *certificate) believe(acquires []int32) bool {
	a, b := x.hold(x.Ops[acquires[0]].ID), x.hold(x.Ops[acquires[1]].ID)
	if a == nil || b == nil || a.Outcome != history.OK || b.Outcome != history.OK ||
		x.acquire(a).Outcome != history.OK || x.acquire(b).Outcome != history.OK {
		return false
	}
	aFrom, aTo := a.believed()
	bFrom, bTo := b.believed()
	slack := x.Bounds.Slack + 1
	if a.Process == b.Process {
		slack = 0
	}
	for i := range x.Ops { // a pause may excuse one of the holders
		op := &x.Ops[i]
		if op.Kind == history.Gap && (op.Process == a.Process && op.Return >= a.Call && op.Call <= aTo ||
			op.Process == b.Process && op.Return >= b.Call && op.Call <= bTo) {
			return false
		}
	}
	return len(x.reenters(a))+len(x.reenters(b)) == 0 && aFrom < aTo && bFrom < bTo && x.clash(a.Permits, b.Permits) &&
		plus(aFrom, slack) < bTo && plus(bFrom, slack) < aTo
}

// lease proves a violation of the lease's validity.
func (x *certificate) lease(cause string, evidence []int32) (string, []int32) {
	switch op := &x.Ops[evidence[0]]; cause {
	case history.OverClaim:
		sure := x.Case.rules.Least(op.TTL)
		most := plus(op.Return, plus(sure, x.Bounds.Round+x.Bounds.Linger))
		if op.Until != history.Forever && op.Until > most {
			return "claim", evidence[:1]
		}
		return "", nil // a formula does not cover whether other holders were told the same
	case history.RenewalFailure:
		return x.unrenewed(evidence)
	}
	return x.core(evidence)
}

// unrenewed proves a failed renewal if the history has nothing that may excuse it.
func (x *certificate) unrenewed(evidence []int32) (string, []int32) {
	h := x.hold(x.Ops[evidence[0]].ID)
	if h == nil || len(evidence) != 2 || len(x.windows) > 0 || h.Crashed != history.Forever {
		return "", nil
	}
	told := &x.Ops[evidence[1]]
	proof := x.proof(h, told.Return)
	over := (&ruler{c: x.Case}).promised(proof)
	for _, n := range x.extends(h) {
		if op := &x.Ops[n]; op != proof && op.Call < over && op.Return > proof.Return {
			return "", nil
		}
	}
	if h.Release >= 0 && h.Release != evidence[1] || told.Call <= over || over-proof.Return < h.TTL/3 {
		return "", nil
	}
	return "unrenewed", evidence
}

// lost proves that a page view was lost, or that the counter returned a wrong value.
func (x *certificate) lost(evidence []int32) (string, []int32) {
	var stores, loads []int32
	for _, n := range evidence {
		switch op := &x.Ops[n]; {
		case op.Kind == history.Store:
			stores = append(stores, n)
		case op.Kind == history.Load && op.Outcome == history.OK:
			loads = append(loads, n)
		}
	}
	for _, n := range stores {
		if op := &x.Ops[n]; op.Outcome == history.OK && x.finished(op.Key) && x.place[n] == 0 {
			return "outside", []int32{n}
		}
	}
	if len(stores) == 2 {
		a, b := &x.Ops[stores[0]], &x.Ops[stores[1]]
		if a.Outcome == history.OK && b.Outcome == history.OK && a.Seen == b.Seen && a.Seen != 0 {
			return "replaced", stores
		}
	}
	for _, n := range loads {
		op := &x.Ops[n]
		h := x.hold(op.Hold)
		if h != nil && h.Permits > 0 && h.Uses[0] >= 0 && h.Uses[0] != n && x.Ops[h.Uses[0]].Seen != op.Seen {
			return "changed", []int32{h.Uses[0], n}
		}
		for _, s := range stores {
			if st := &x.Ops[s]; st.Outcome == history.OK && x.before(st.Return, op.Call, st.Process, op.Process) &&
				x.finished(st.Key) && x.place[s] > 0 && x.older(op.Seen, s) {
				return "stale", []int32{s, n}
			}
		}
	}
	for _, n := range evidence {
		op, at := &x.Ops[n], x.at(x.Ops[n].Seen)
		if at < 0 || x.Ops[at].Kind != history.Store || op.Kind == history.Acquire {
			continue
		}
		value := x.Ops[at].Value
		if op.Kind == history.Store {
			value++
		}
		wrong := op.Outcome != history.Failed && op.Value != value && !blank(op) && !blank(&x.Ops[at])
		if wrong || x.Ops[at].Outcome == history.Failed {
			return "value", []int32{n, at}
		}
	}
	return "", nil
}

// older reports whether a store that was seen comes before another store in the chain. If seen is 0, no store was
// seen, so the result is true.
func (x *certificate) older(seen history.ID, store int32) bool {
	at := x.at(seen)
	return at < 0 || x.place[at] > x.place[store]
}

// left proves that a key was left over on the servers.
func (x *certificate) left(cause string, evidence []int32) (string, []int32) {
	last := evidence[len(evidence)-1]
	found, a := &x.Ops[last], &x.Ops[evidence[0]]
	if found.Kind != history.Found && found.Kind != history.Sight {
		return "", nil
	}
	if cause == history.TTLTooLong {
		if len(x.Faults) > 0 {
			return "", nil
		}
		return "expiry", []int32{last}
	}
	if a.Kind != history.Acquire || a.Token == 0 || a.Token != found.Token || x.Sites > 1 || found.Until <= found.Call {
		return "", nil
	}
	for i := range x.Ops {
		switch op := &x.Ops[i]; op.Kind {
		case history.Fault, history.Heal, history.Gap, history.Incident, history.Role:
			if op.Kind == history.Fault || op.Call <= found.Call && op.Return >= a.Call {
				return "", nil // a formula cannot tell whether the event excuses the key
			}
		}
	}
	if a.Outcome == history.Failed {
		if a.Reason == history.Quorum || found.Call < plus(a.Return, x.slack(a.Process, found.Process)) {
			return "", nil
		}
		return "found", []int32{evidence[0], last}
	}
	h := x.hold(a.ID)
	if h == nil || h.answer != history.OK || !x.before(h.releaseReturn, found.Call, h.Process, found.Process) {
		return "", nil
	}
	for _, n := range slices.Concat(x.extends(h), x.reenters(h)) {
		if op := &x.Ops[n]; op.Outcome == history.Unknown || op.Return >= h.releaseReturn {
			return "", nil
		}
	}
	return "found", []int32{evidence[0], last}
}
