package main

import (
	"slices"
	"time"

	"hammerlock/history"
)

// nesting is a possible state of a hold: its depth, and the numbers of unanswered re-entries and releases that may
// still take effect.
type nesting struct{ count, enter, leave int64 }

// land returns all states that are possible if each unanswered call takes effect now, or does not.
func land(may map[nesting]bool) map[nesting]bool {
	then := map[nesting]bool{}
	for n := range may {
		for in := range n.enter + 1 {
			for out := range n.leave + 1 {
				if count := n.count + in - out; count >= 0 {
					then[nesting{count, n.enter - in, n.leave - out}] = true
				}
			}
		}
	}
	return then
}

// proveCounts replays the counts that a reentrant lock reported, for each possible outcome of unanswered calls.
func (r *record) proveCounts(x *held, say func(string, ...any)) {
	told := x.acquire.Value != 0
	may := map[nesting]bool{{1, 0, 0}: true}
	calls := slices.Concat(x.extends, x.again, x.releases)
	slices.SortStableFunc(calls, func(a, b *history.Op) int { return int(a.Call - b.Call) })
	for _, op := range calls {
		may = land(may)
		over := false
		for n := range may {
			over = over || n.count == 0
		}
		refused := op.Outcome == history.Failed
		if op.Return > r.sure(x, op) || over || r.forgot(x.acquire.Call, op.Return) {
			return // it may be another hold by now, or none
		}
		if refused {
			say("%s hears %s within its lease", op.ID, op.Reason)
			return
		}
		if op.Kind == history.Extend {
			continue
		}
		if op.Kind == history.Acquire && op.Outcome == history.OK &&
			(op.Token != x.acquire.Token || op.Fence != x.acquire.Fence) {
			say("%s has another token than %s", op.ID, x.acquire.ID)
		}
		then := map[nesting]bool{}
		for n := range may {
			switch {
			case op.Kind == history.Acquire && op.Outcome == history.OK:
				n.count++
			case op.Kind == history.Acquire:
				n.enter++
			case op.Outcome == history.OK:
				n.count--
			default:
				n.leave++
			}
			for m := range land(map[nesting]bool{n: true}) {
				if !told || op.Outcome != history.OK || m.count == op.Value {
					then[m] = true
				}
			}
		}
		if may = then; len(may) == 0 {
			say("%s hears of %d holds, which cannot be", op.ID, op.Value)
			return
		}
	}
}

// provePermits counts the permits in use at each grant. Within one process it uses the times as they are. Across
// processes, it shortens each hold by half of the slack at both ends.
func (r *record) provePermits(say func(string, ...any)) {
	all := r.h.Claims.Permits
	if all == 0 {
		return
	}
	count := func(process int, shrink time.Duration) {
		for _, at := range r.holds {
			from, to := r.guaranteed(at)
			if from += shrink; from >= to-shrink || process >= 0 && int(at.acquire.Process) != process {
				continue
			}
			sum := 0
			for _, x := range r.holds {
				start, end := r.guaranteed(x)
				if x.acquire.Key == at.acquire.Key && (process < 0 || int(x.acquire.Process) == process) &&
					start+shrink <= from && from < end-shrink {
					if sum += int(x.acquire.Permits); x.acquire.Permits == 0 {
						sum += all
					}
				}
			}
			if sum > all && !r.forgot(from-2*r.most(at.acquire.TTL), from) {
				say("%d permits of %d are out when %s is granted", sum, all, at.acquire.ID)
				return
			}
		}
	}
	for p := range r.h.Processes {
		count(p, 0)
	}
	if r.h.Processes > 1 {
		count(-1, r.h.Bounds.Slack/2+1)
	}
}

// inTime reports whether all loads and stores of a visit came while the holder relied on its hold.
func (r *record) inTime(op *history.Op) bool {
	for _, x := range r.holds {
		if x.acquire.ID != op.Hold {
			continue
		}
		from, to := r.believed(x)
		for _, use := range append(slices.Clone(x.loads), x.stores...) {
			if use.Call <= from || use.Return >= to {
				return false
			}
		}
		return true
	}
	return false
}

// proveStores finds three mistakes. Two stores replaced the same store, although both holders were in time; the page
// lost an acknowledged store; or a store with an old fence was accepted.
func (r *record) proveStores(say func(string, ...any)) {
	var stores []*history.Op
	for i := range r.h.Ops {
		if op := &r.h.Ops[i]; op.Kind == history.Store && op.Outcome == history.OK {
			stores = append(stores, op)
		}
	}
	for i, a := range stores {
		for _, b := range stores[:i] {
			slack := r.slack(a, b)
			switch {
			case a.Key != b.Key:
			case a.Seen == b.Seen && r.inTime(a) && r.inTime(b) &&
				!r.forgot(min(a.Call, b.Call)-2*r.most(r.ops[a.Hold].TTL), max(a.Return, b.Return)):
				say("%s and %s replaced the same store, both in time", a.ID, b.ID)
			case r.h.Fenced && (a.Fence < b.Fence && b.Return+slack < a.Call || b.Fence < a.Fence &&
				a.Return+slack < b.Call):
				say("%s or %s was taken with an old fence", a.ID, b.ID)
			}
		}
	}
	r.proveChain(stores, say)
}

// proveChain finds acknowledged stores that the counter lost: at the end, the page has what they replaced. Neither the
// lock nor its servers can cause that.
func (r *record) proveChain(stores []*history.Op, say func(string, ...any)) {
	for i := range r.h.Ops {
		final := &r.h.Ops[i]
		if final.Kind != history.Final {
			continue
		}
		for _, op := range stores {
			if op.Key == final.Key && op.ID != final.Seen && op.Seen == final.Seen {
				say("%s was acknowledged, and the page has what it replaced", op.ID)
			}
		}
	}
}

// proveOrder finds a waiter in the queue that tried again after a later waiter had been granted the lock.
func (r *record) proveOrder(say func(string, ...any)) {
	type visit struct {
		first, queued, granted *history.Op // first try; the refusal since which it is queued; grant
		last                   *history.Op
	}
	open := map[int32]*visit{}
	var all []*visit
	for _, op := range r.byCall() {
		if op.Kind == history.End {
			delete(open, op.Worker)
		}
		if op.Kind != history.Acquire {
			continue
		}
		v := open[op.Worker]
		if v == nil || v.first.Key != op.Key || v.granted != nil {
			v = &visit{first: op}
			open[op.Worker] = v
			all = append(all, v)
		}
		refused := op.Outcome == history.Failed && op.Reason == history.Busy
		if v.last != nil && op.Return-v.last.Call > r.least(op.TTL) || !refused && op.Outcome != history.OK {
			v.queued = nil
		}
		if refused && v.queued == nil {
			v.queued = op
		}
		if op.Outcome == history.OK {
			v.granted = op
		}
		v.last = op
	}
	unknown := slices.ContainsFunc(r.h.Ops, func(op history.Op) bool {
		return op.Kind == history.Acquire && op.Outcome == history.Unknown
	})
	ends := slices.ContainsFunc(r.h.Ops, func(op history.Op) bool { return op.Kind == history.End })
	for _, a := range all {
		for _, b := range all {
			if a.queued == nil || b.granted == nil || a == b || a.first.Key != b.first.Key || unknown || !ends {
				continue
			}
			slack := r.slack(a.first, b.first)
			if a.queued.Return+slack < b.first.Call && b.granted.Return+slack < a.last.Call {
				say("%s waited since %s when %s came and was served", a.first.ID, a.queued.ID, b.granted.ID)
			}
		}
	}
}

func (r *record) byCall() []*history.Op {
	list := make([]*history.Op, 0, len(r.h.Ops))
	for i := range r.h.Ops {
		list = append(list, &r.h.Ops[i])
	}
	slices.SortStableFunc(list, func(a, b *history.Op) int {
		at := func(op *history.Op) time.Duration {
			if op.Kind == history.End {
				return op.Return
			}
			return op.Call
		}
		return int(at(a) - at(b))
	})
	return list
}
