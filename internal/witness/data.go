package witness

import (
	"cmp"
	"errors"
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
			for i := range s.uses {
				if s.uses[i].kind == history.Store || r.holding(&s.uses[i]) != nil {
					r.DataLoose++
				}
			}
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
	for i := range s.uses {
		u := &s.uses[i]
		if u.kind == history.Load && r.holding(u) == nil {
			continue // a read without the lock is not part of a visit
		}
		h := r.user(u)
		if h == nil && r.unreturned == nil {
			continue // its client never had the lock
		}
		if h == nil || ok && h.key != key || r.unreturned != nil && r.unreturned[h.key].at(u.Call) > 1 {
			return 0, false
		}
		key, ok = h.key, true
	}
	return key, ok
}

// last returns the last grant that the client of a use received before it; nil if there was none.
func (r *Reader) last(u *use) *span {
	list := r.spans[r.client(u)]
	n, _ := slices.BinarySearchFunc(list, u.Call+1, func(p *span, t time.Duration) int {
		return cmp.Compare(p.from, t)
	})
	if n == 0 {
		return nil
	}
	return list[n-1]
}

func (r *Reader) client(u *use) string { return r.who(&sighting{Request: u.Request}) }

// holding returns the hold during which a data key was used; nil if its client held no lock then.
func (r *Reader) holding(u *use) *hold {
	if p := r.last(u); p != nil && p.to >= u.Call {
		return p.hold
	}
	return nil
}

// user returns the hold of a use. A write without the lock is one of the client's last hold, unless clients share
// connections.
func (r *Reader) user(u *use) *hold {
	if p := r.last(u); p != nil && (p.to >= u.Call || r.unreturned == nil) {
		return p.hold
	}
	return nil
}

// match sorts the uses by their replies, and assigns a request to each effect. It takes the request that was answered
// first, among those that wrote the same value and were called before the effect. It returns false if an effect has no
// request, or if a write has no effect.
func (s *sheet) match() bool {
	slices.SortFunc(s.uses, func(a, b use) int { return cmp.Compare(a.Return, b.Return) })
	var writes []*use // they point into the uses, which keep their order from here on
	for i := range s.uses {
		if s.uses[i].kind == history.Store {
			writes = append(writes, &s.uses[i])
		}
	}
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

// saw returns the index of the last store that a read can have seen; -1 = the initial value. It returns false if none
// is possible. If several are, the last one is the best for the lock: what its reader writes then has lost no store.
func (s *sheet) saw(u *use) (at int, ok bool) {
	for i := len(s.effects) - 1; i >= 0; i-- {
		if i+1 < len(s.effects) && s.effects[i+1].at < u.Call {
			return 0, false // a later store had already replaced it, and all before it
		}
		if s.effects[i].value == u.value && s.effects[i].use.Call <= u.Return {
			return i, true
		}
	}
	return -1, len(s.effects) == 0 || s.effects[0].at >= u.Call
}

// visits adds the loads and stores of one data key.
func (r *Reader) visits(s *sheet, key int32) {
	saw, loads := make([]int, len(s.uses)), map[string][]int{}
	for i := range s.uses {
		u, ok := &s.uses[i], false
		if u.kind != history.Load {
			continue
		}
		if saw[i], ok = s.saw(u); !ok && r.holding(u) != nil {
			r.DataUnsure++
			return
		} else if ok {
			loads[r.client(u)] = append(loads[r.client(u)], i)
		}
	}
	if !r.stores(s, key, saw, loads) {
		return
	}
	for i := range s.uses {
		if u := &s.uses[i]; u.kind == history.Load && r.holding(u) != nil {
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

// stores adds the stores of one data key, in the server's order, so that loads can refer to them. It returns false if
// there was no room. saw has what each use has seen, and loads has each client's uses that are loads.
func (r *Reader) stores(s *sheet, key int32, saw []int, loads map[string][]int) bool {
	wrote := map[string]int{} // client -> 1 + index of its last store
	for i := range s.effects {
		e := &s.effects[i]
		who, from := r.client(e.use), i-1
		own := wrote[who] - 1
		if own >= 0 && !e.use.adds && r.user(s.effects[own].use) == r.user(e.use) {
			from = max(own, from)
		}
		before, _ := slices.BinarySearchFunc(loads[who], e.use.Call+1, func(n int, t time.Duration) int {
			return cmp.Compare(s.uses[n].Return, t)
		})
		if before > 0 && !e.use.adds { // the client's last load before its store
			n := loads[who][before-1]
			u := &s.uses[n]
			h, since := r.holding(u), own < 0 || u.Call >= s.effects[own].use.Call
			based := h == r.holding(e.use) || h == r.user(e.use) || s.stale(i, saw[n])
			if since && based && saw[n] < i {
				from = max(saw[n], own)
			}
		}
		h := r.user(e.use)
		if h == nil {
			h = &hold{worker: r.worker(e.use.Call, who)}
			r.leave(h.worker)
		}
		op := r.visit(e.use, h, key)
		if from >= 0 {
			op.Seen, op.Value = r.ops[s.effects[from].op].ID, s.effects[from].n
		}
		op.Value++
		if e.op, e.n = r.add(r, op), op.Value; e.op < 0 {
			return false
		}
		wrote[who] = i + 1
	}
	return true
}

// stale tells whether a store certainly replaced what its client had not seen. The client had seen the store `from`
// before it had the lock, and it counts: its number is beyond the one that it saw, but not beyond the latest.
func (s *sheet) stale(i, from int) bool {
	if from < 0 || i == 0 {
		return false
	}
	seen, err := strconv.ParseInt(s.effects[from].value, 10, 64)
	wrote, err2 := strconv.ParseInt(s.effects[i].value, 10, 64)
	latest, err3 := strconv.ParseInt(s.effects[i-1].value, 10, 64)
	return errors.Join(err, err2, err3) == nil && (seen < wrote && wrote <= latest || seen > wrote && wrote >= latest)
}

func (r *Reader) visit(u *use, h *hold, key int32) history.Op {
	return history.Op{Kind: u.kind, Worker: h.worker, Key: key, Hold: h.id, Call: u.Call, Return: u.Return,
		Outcome: history.OK}
}
