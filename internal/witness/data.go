package witness

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// sheet has the commands on a data key, such as a page counter, and their effects.
type sheet struct {
	uses    []use
	effects []store
}

// use is a read or a write of a data key.
type use struct {
	*wire.Request
	value string // the value read or written; for an addition, the sum
	kind  history.Kind
	adds  bool
}

// store is an effect on a data key. Stores keep the server's order.
type store struct {
	at    time.Duration
	value string // empty for an addition, until match takes the sum from the reply
	use   *use
	op    int
	n     int64 // number of stores that its writer knew of, including this store
}

// span is the time during which a worker held a lock.
type span struct {
	hold     *hold
	from, to time.Duration
}

// use adds a command on a data key to the sheet of that key.
func (r *Reader) use(q *wire.Request) {
	if len(q.Args) < 2 || !matches(r.o.Data, q.Args[1]) || q.Return == history.Forever || q.Reply.Kind == wire.Error ||
		len(r.ops) >= r.o.Most {
		return
	}
	u := use{Request: q, kind: history.Store}
	switch q.Args[0] {
	case "GET":
		u.kind, u.value = history.Load, q.Reply.Text
	case "SET", "SETEX", "PSETEX", "GETSET":
		if q.Reply.Kind == wire.Nil && q.Args[0] == "SET" {
			return
		}
		u.value = understand(q.Args).token
	case "INCR", "DECR", "INCRBY", "DECRBY":
		u.adds, u.value = true, strconv.FormatInt(q.Reply.Int, 10)
	default:
		return
	}
	s := made(r.sheets, subject{q.DB, q.Args[1]}, sheet{})
	s.uses = append(s.uses, u)
}

// stored adds an effect on a data key to the sheet of that key.
func (r *Reader) stored(e *wire.Effect, key string) {
	if r.o.Most == 0 {
		return
	}
	s := made(r.sheets, subject{e.DB, key}, sheet{})
	s.effects = append(s.effects, store{at: e.At, value: understand(e.Args).token, op: -1})
}

// settleData turns the commands on data into Load and Store operations. Each operation belongs to the worker whose
// connection holds the lock. If holders may share connections, it belongs to the only worker that has not released the
// lock; they do not share them if certain is true. Values and the server's order show which store a load has read.
func (r *Reader) settleData(certain bool) {
	if r.unreturned = nil; !certain && r.Improper > 0 {
		r.countUnreturned()
	}
	for _, list := range r.spans {
		slices.SortStableFunc(list, func(a, b *span) int { return cmp.Compare(a.from, b.from) })
	}
	taken := map[int32]bool{}
	for _, s := range r.sheets {
		key, ok := r.pageOf(s)
		if !ok || taken[key] || !s.match() {
			r.DataLoose += int64(len(s.uses))
			continue
		}
		taken[key] = true
		r.visits(s, key)
	}
}

// stays has two sorted lists: the times at which holders learned of their grants, and the times at which they
// released.
type stays struct{ from, to []time.Duration }

// countUnreturned collects, for each lock, the times from which stays.at computes the number of holders.
func (r *Reader) countUnreturned() {
	r.unreturned = map[int32]*stays{}
	for _, list := range r.spans {
		for _, p := range list {
			if p.from <= p.to {
				at := made(r.unreturned, p.hold.key, stays{})
				at.from, at.to = append(at.from, p.from), append(at.to, p.to)
			}
		}
	}
	for _, at := range r.unreturned {
		slices.Sort(at.from)
		slices.Sort(at.to)
	}
}

// at returns the number of workers that held the lock at a given time.
func (s *stays) at(t time.Duration) int {
	begun, _ := slices.BinarySearch(s.from, t+1)
	over, _ := slices.BinarySearch(s.to, t)
	return begun - over
}

// pageOf returns the number of the lock that covers all uses of a data key. It returns false if there is no such lock,
// if there are several, or if two workers held it during a use.
func (r *Reader) pageOf(s *sheet) (key int32, ok bool) {
	s.uses = slices.DeleteFunc(s.uses, func(u use) bool { // a read without the lock is not part of a visit
		return u.kind == history.Load && r.holding(&u) == nil
	})
	for i := range s.uses {
		u := &s.uses[i]
		h := r.holding(u)
		if h == nil || ok && h.key != key || r.unreturned != nil && r.unreturned[h.key].at(u.Call) > 1 {
			return 0, false
		}
		key, ok = h.key, true
	}
	return key, ok && len(s.uses) > 0
}

// holding returns the hold during which a data key was used; nil if its client held no lock then. It is the last grant
// that the client received before the use.
func (r *Reader) holding(u *use) *hold {
	who := r.who(&sighting{Request: u.Request})
	list := r.spans[who]
	n, _ := slices.BinarySearchFunc(list, u.Call+1, func(p *span, t time.Duration) int {
		return cmp.Compare(p.from, t)
	})
	if n == 0 || list[n-1].to < u.Call {
		return nil
	}
	return list[n-1].hold
}

// match assigns a request to each effect. It takes the request that was answered first, among those that wrote the same
// value and were called before the effect. It returns false if an effect has no request, or if a write has no effect.
func (s *sheet) match() bool {
	var writes []*use
	for i := range s.uses {
		if s.uses[i].kind == history.Store {
			writes = append(writes, &s.uses[i])
		}
	}
	slices.SortFunc(writes, func(a, b *use) int { return int(a.Return - b.Return) })
	for i := range s.effects {
		e := &s.effects[i]
		n := slices.IndexFunc(writes, func(u *use) bool {
			return u.Call <= e.at && (e.value == u.value || e.value == "" && u.adds)
		})
		if n < 0 {
			return false
		}
		e.use, e.value = writes[n], writes[n].value
		writes = slices.Delete(writes, n, n+1)
	}
	return len(writes) == 0
}

// saw returns the index of the only store that a read can have seen; -1 = the initial value. It returns false if no
// store, or more than one, is possible.
func (s *sheet) saw(u *use) (at int, ok bool) {
	at = -2
	for i := -1; i < len(s.effects); i++ {
		if i >= 0 && (s.effects[i].value != u.value || s.effects[i].use.Call > u.Return) {
			continue
		}
		if i+1 < len(s.effects) && s.effects[i+1].at < u.Call {
			continue // a later store had already replaced it
		}
		if i < 0 && slices.ContainsFunc(s.effects,
			func(e store) bool { return e.value == u.value && e.use.Call <= u.Return }) {
			continue // a store of the same value is possible
		}
		if at != -2 {
			return 0, false
		}
		at = i
	}
	return at, at != -2
}

// visits adds the loads and stores of one data key.
func (r *Reader) visits(s *sheet, key int32) {
	read := map[*hold]int{} // hold -> 1 + index of its own last store
	slices.SortFunc(s.uses, func(a, b use) int { return int(a.Return - b.Return) })
	saw, loads := make([]int, len(s.uses)), map[*hold][]int{} // saw is indexed by use; loads: hold -> indices of uses
	for i := range s.uses {
		u, ok := &s.uses[i], false
		if u.kind != history.Load {
			continue
		}
		if saw[i], ok = s.saw(u); !ok {
			r.DataUnsure++
			return
		}
		loads[r.holding(u)] = append(loads[r.holding(u)], i)
	}
	// stores are added first, in the server's order, so that loads can refer to them
	for i := range s.effects {
		e := &s.effects[i]
		h, from := r.holding(e.use), i-1
		for _, n := range loads[h] {
			if e.use.adds || s.uses[n].Return > e.use.Call {
				break
			}
			from = saw[n]
		}
		if read[h] > 0 && !e.use.adds {
			from = max(from, read[h]-1) // the hold's own last store
		}
		op := r.visit(e.use, h, key)
		if from >= 0 {
			op.Seen, op.Value = r.ops[s.effects[from].op].ID, s.effects[from].n
		}
		op.Value++
		if e.op, e.n = r.add(r, op), op.Value; e.op < 0 {
			return
		}
		read[h] = i + 1
	}
	for i := range s.uses {
		if u := &s.uses[i]; u.kind == history.Load {
			op := r.visit(u, r.holding(u), key)
			if saw[i] >= 0 {
				op.Seen, op.Value = r.ops[s.effects[saw[i]].op].ID, s.effects[saw[i]].n
			}
			r.add(r, op)
		}
	}
	if n := len(s.effects); n > 0 {
		last := &s.effects[n-1]
		r.add(r, history.Op{Kind: history.Final, Worker: -1, Key: key, Value: last.n, Seen: r.ops[last.op].ID,
			Call: r.now, Return: r.now, Outcome: history.OK})
	}
}

func (r *Reader) visit(u *use, h *hold, key int32) history.Op {
	return history.Op{Kind: u.kind, Worker: h.worker, Key: key, Hold: h.id, Call: u.Call, Return: u.Return,
		Outcome: history.OK}
}
