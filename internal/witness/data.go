package witness

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// sheet is a key with data: the commands on it, and their effects.
type sheet struct {
	uses    []use
	effects []store
}

// use is a read or a write of data.
type use struct {
	*wire.Request
	value string // the value read or written; the sum of an addition
	kind  history.Kind
	adds  bool
}

// store is an effect on data, in the server's order.
type store struct {
	at    time.Duration
	value string // empty: an addition, of which the answer tells
	use   *use
	op    int
	n     int64 // how many stores its writer knew of, with it
}

// span is when a holder had a lock, as the wire shows it.
type span struct {
	hold     *hold
	from, to time.Duration
}

// use takes in a command on data.
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

// stored takes in an effect on data.
func (r *Reader) stored(e *wire.Effect, key string) {
	if r.o.Most == 0 {
		return
	}
	s := made(r.sheets, subject{e.DB, key}, sheet{})
	s.effects = append(s.effects, store{at: e.At, value: understand(e.Args).token, op: -1})
}

// settleData makes loads and stores of visits. They are those of the connection that has the lock; where connections
// serve several holders at a time, of the only holder that did not give its lock back before. The values and the
// server's order tell which store a load saw.
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

// stays is when holders of a lock heard of their grants, and when they gave them back, each in its order.
type stays struct{ from, to []time.Duration }

// countUnreturned finds how many holders of each lock had not given it back at a time.
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

// at is how many had the lock.
func (s *stays) at(t time.Duration) int {
	begun, _ := slices.BinarySearch(s.from, t+1)
	over, _ := slices.BinarySearch(s.to, t)
	return begun - over
}

// pageOf is the page of the lock under which all uses of data are; false if they are under none, or several, or under
// which of two holds one is cannot be told.
func (r *Reader) pageOf(s *sheet) (key int32, ok bool) {
	s.uses = slices.DeleteFunc(s.uses, func(u use) bool { // a read without the lock is no visit
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

// holding is the hold under which data was used: the last one that its connection was granted before, if it was not
// given back.
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

// match finds the request of each effect: the first that was answered of those that wrote the same and were called
// before it. It is false if one has none, or a write has no effect.
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

// saw is the store that a read saw: the only one of that value which can have been there; -1 = the value before all. It
// is false if there are several, or none.
func (s *sheet) saw(u *use) (at int, ok bool) {
	at = -2
	for i := -1; i < len(s.effects); i++ {
		if i >= 0 && (s.effects[i].value != u.value || s.effects[i].use.Call > u.Return) {
			continue
		}
		if i+1 < len(s.effects) && s.effects[i+1].at < u.Call {
			continue // it was replaced before
		}
		if i < 0 && slices.ContainsFunc(s.effects,
			func(e store) bool { return e.value == u.value && e.use.Call <= u.Return }) {
			continue // it may have been there before all, too
		}
		if at != -2 {
			return 0, false
		}
		at = i
	}
	return at, at != -2
}

// visits tells of the loads and stores on a page.
func (r *Reader) visits(s *sheet, key int32) {
	read := map[*hold]int{} // by hold: the store that it has seen
	slices.SortFunc(s.uses, func(a, b use) int { return int(a.Return - b.Return) })
	saw, loads := make([]int, len(s.uses)), map[*hold][]int{} // by use; by hold: into uses
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
	// Stores first, in the server's order, so that loads can name them.
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
			from = max(from, read[h]-1) // its own store
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
