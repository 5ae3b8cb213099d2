package witness

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
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

	who string // its client: see attribute
	in  *hold  // the hold during which it came; nil if its client held no lock then
	of  *hold  // the same hold; for a use without the lock, the last hold of its client
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
	if len(q.Args) < 2 || !matches(r.data, q.Args[1]) || q.Return == history.Forever || q.Reply.Kind == wire.Error ||
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
	value := understand(forKey(e.Args, key)).token
	if strings.HasPrefix(e.Args[0], "INCR") || strings.HasPrefix(e.Args[0], "DECR") {
		value = "" // the sum is in the reply
	}
	s := made(r.sheets, subject{e.DB, key}, sheet{})
	s.effects = append(s.effects, store{at: e.At, value: value, op: -1})
}

// settleData turns the commands on data into Load and Store operations. Values and the server's order show which store
// a load has read.
func (r *Reader) settleData(certain bool) {
	if r.unreturned = nil; !certain && r.Improper+r.pooled > 0 {
		r.countUnreturned()
	}
	for _, list := range r.spans {
		slices.SortStableFunc(list, func(a, b *span) int { return cmp.Compare(a.from, b.from) })
	}
	taken := map[int32]bool{}
	for _, s := range r.sheets {
		key, ok := r.attribute(s)
		if !ok || taken[key] || !s.match() || s.blind(r.unreturned != nil) {
			for i := range s.uses {
				if s.uses[i].kind == history.Store || s.uses[i].in != nil || r.unreturned != nil {
					r.DataLoose++
				}
			}
			unrequested, _ := s.assign()
			r.DataUnrequested += int64(unrequested)
			continue
		}
		taken[key] = true
		r.visits(s, key)
	}
}

// stays has the holds of one lock: sorted by grant, and the sorted times of the releases.
type stays struct {
	spans []*span
	to    []time.Duration
}

// countUnreturned collects the holds of each lock, from which stays.sole tells who held it.
func (r *Reader) countUnreturned() {
	r.unreturned = map[int32]*stays{}
	for _, list := range r.spans {
		for _, p := range list {
			if p.from <= p.to {
				at := made(r.unreturned, p.hold.key, stays{})
				at.spans, at.to = append(at.spans, p), append(at.to, p.to)
			}
		}
	}
	for _, at := range r.unreturned {
		slices.SortFunc(at.spans, func(a, b *span) int { return cmp.Compare(a.from, b.from) })
		slices.Sort(at.to)
	}
}

// sole returns the hold that had been granted and not released at a given time, if there was exactly one.
func (s *stays) sole(t time.Duration) *span {
	begun, _ := slices.BinarySearchFunc(s.spans, t+1, func(p *span, t time.Duration) int {
		return cmp.Compare(p.from, t)
	})
	if over, _ := slices.BinarySearch(s.to, t); begun != over+1 || s.spans[begun-1].to < t {
		return nil
	}
	return s.spans[begun-1]
}

// attribute finds the holds of the uses of a data key. It returns the number of the lock that guards the key; false if
// there is no such lock, or if it cannot be told.
func (r *Reader) attribute(s *sheet) (key int32, ok bool) {
	for i := range s.uses {
		s.uses[i].who = r.who(&sighting{Request: s.uses[i].Request})
	}
	if r.unreturned != nil {
		return r.attributeToSoles(s)
	}
	for i := range s.uses {
		u := &s.uses[i]
		p := r.last(u)
		if p == nil {
			continue // its client never had the lock
		}
		if u.of = p.hold; p.to >= u.Call {
			u.in = p.hold
		}
		switch {
		case u.kind == history.Load && u.in == nil: // a read without the lock is not part of a visit
		case ok && p.hold.key != key:
			return 0, false
		default:
			key, ok = p.hold.key, true
		}
	}
	return key, ok
}

// attributeToSoles is attribute for clients that share connections, or have several. A use belongs to the worker that
// was the lock's only holder at that time. The lock is the one that had exactly one holder at each write of the data;
// ok is false if several locks had that, or none.
func (r *Reader) attributeToSoles(s *sheet) (key int32, ok bool) {
	of := func(key int32, u *use) *span { return r.unreturned[key].sole(u.Call) }
	guards := slices.Collect(maps.Keys(r.unreturned))
	for i := range s.uses {
		if u := &s.uses[i]; u.kind == history.Store {
			guards = slices.DeleteFunc(guards, func(key int32) bool { return of(key, u) == nil })
		}
	}
	if len(guards) != 1 {
		return 0, false
	}
	key = guards[0]
	for i := range s.uses {
		u := &s.uses[i]
		if p := of(key, u); p != nil {
			u.in, u.of = p.hold, p.hold
			u.who = strconv.FormatUint(uint64(p.hold.id), 10)
		}
	}
	return key, true
}

// last returns the last grant that the client of a use received before it; nil if there was none.
func (r *Reader) last(u *use) *span {
	list := r.spans[u.who]
	n, _ := slices.BinarySearchFunc(list, u.Call+1, func(p *span, t time.Duration) int {
		return cmp.Compare(p.from, t)
	})
	if n == 0 {
		return nil
	}
	return list[n-1]
}

// blind tells whether it is unknown on what some write is based, because its client had not read the key
// before. There are two such cases: the client never had the lock, or it had already written during this hold
// and soles is true. If soles is true, only the time shows which hold a use belongs to. The first write of the
// key need not follow a read.
func (s *sheet) blind(soles bool) bool {
	read, wrote := map[string]time.Duration{}, map[string]bool{} // client -> return of its last read; has it used one
	for i := range s.uses {                                      // sorted by return
		u := &s.uses[i]
		if u.kind == history.Load {
			read[u.who] = u.Return
			continue
		}
		at, has := read[u.who]
		has = has && at <= u.Call
		if !has && !u.adds && s.effects[0].use != u && (u.of == nil || soles && wrote[u.who]) {
			return true
		}
		wrote[u.who] = wrote[u.who] || has
		delete(read, u.who)
	}
	return false
}

// match assigns a request to each effect. It returns false if an effect has no request, or if a write has no effect.
func (s *sheet) match() bool {
	unrequested, without := s.assign()
	return unrequested+without == 0
}

// assign sorts the uses by their replies, and assigns a request to each effect. It takes the request that was answered
// first, among those that wrote the same value and were called before the effect. It returns how many effects have no
// request, as those of a script, and how many writes have no effect.
func (s *sheet) assign() (unrequested, without int) {
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
			unrequested++
			continue
		}
		e.use, e.value = writes[n], writes[n].value
		writes = slices.Delete(writes, n, n+1)
	}
	return unrequested, len(writes)
}

// saw returns the index of the last store that a read can have seen; -1 = the initial value. ok is false if the read
// can have seen nothing of that. If several stores are possible, the last one is best for the lock: a write that
// follows this read has then lost no store.
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
		if saw[i], ok = s.saw(u); !ok && u.in != nil {
			r.DataUnsure++
			return
		} else if ok {
			loads[u.who] = append(loads[u.who], i)
		}
	}
	if !r.stores(s, key, saw, loads) {
		return
	}
	for i := range s.uses {
		if u := &s.uses[i]; u.kind == history.Load && u.in != nil {
			op := r.visit(u, u.in, key)
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

// stores adds the stores of one data key, in the server's order, so that loads can refer to them. It returns
// false if there was no room. saw has the index of the store that each use has seen. loads has the indices of
// the loads of each client.
func (r *Reader) stores(s *sheet, key int32, saw []int, loads map[string][]int) bool {
	wrote := map[string]int{} // client -> 1 + index of its last store
	for i := range s.effects {
		e := &s.effects[i]
		who, from := e.use.who, i-1
		own := wrote[who] - 1
		if own >= 0 && !e.use.adds && s.effects[own].use.of == e.use.of {
			from = max(own, from)
		}
		before, _ := slices.BinarySearchFunc(loads[who], e.use.Call+1, func(n int, t time.Duration) int {
			return cmp.Compare(s.uses[n].Return, t)
		})
		if before > 0 && !e.use.adds { // the client's last load before its store
			n := loads[who][before-1]
			u := &s.uses[n]
			since := own < 0 || u.Call >= s.effects[own].use.Call
			based := u.in == e.use.in || u.in == e.use.of || s.stale(i, saw[n])
			if since && based && saw[n] < i {
				from = max(saw[n], own)
			}
		}
		h := e.use.of
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

// stale tells whether the store with the index i certainly replaced a value that its client had not seen. The client
// had read the store with the index from before it had the lock, and it counts up or down. The number that it wrote
// is beyond the one that it had read, but not beyond the latest one.
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
