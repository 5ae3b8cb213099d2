package witness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// Tallies are counts of requests, effects and holds.
type Tallies struct {
	Requests, Effects int64 // that concern locks
	Grants, Releases  int64
	Expiries, Refused int64
	Ambiguous         int64         // of which it cannot be told whose they are
	Improper          int64         // connections were seen to serve several holders at a time
	Guesses           int64         // that rested on connections, and were made unknown
	Outsiders         int64         // effects that no request explains which was seen
	Strange           int64         // keys with commands that are not understood
	Passed            int64         // connections whose bytes are passed on unseen
	Lease             time.Duration // the longest that was granted
	Unreleased        int64         // holds that were not given back
	Permits           int           // the most owners at a time of a lock that has several
	Reentrant         bool
	Full              bool  // more operations came than are kept
	TapsLost          int64 // streams that broke
	DataLoose         int64 // commands on data outside of every hold
	DataUnsure        int64 // reads that may have seen any of several stores
}

// scribe makes operations. Workers are virtual: there is one for each hold that is open at a time, and for each waiter.
type scribe struct {
	ops     []history.Op
	notes   map[history.ID]string
	workers []virtual
	free    []int32             // workers, in the order in which they became free
	lanes   []history.ID        // by lane: its last number
	guesses []int               // operations that are known by their connections only
	victims map[int]*hold       // by operation: whose hold it ended, if it is another's
	doubted map[*hold][]int     // ... that took a hold from another, until that one is heard of again
	known   map[history.ID]bool // acquires without an answer whose holders did something with them later
	phantom []int               // acquires that were refused because they had been granted: see hidden
	dropped int                 // operations that are kept no longer
	pieces  int                 // ... in so many pieces
	passed  time.Duration       // the last of them was cut off then
	blind   []history.Op        // since when a connection that is passed on unseen may have had a lock, or all
}

// virtual is a worker.
type virtual struct {
	lanes []lane
	free  time.Duration // its last operation was over
}

// lane is a track of operations that do not overlap.
type lane struct {
	number int
	last   time.Duration
}

// worker takes one that has been free since before a call, or makes one.
func (s *scribe) worker(call time.Duration) int32 {
	if len(s.free) > 0 && s.workers[s.free[0]].free < call {
		w := s.free[0]
		s.free = s.free[1:]
		return w
	}
	s.workers = append(s.workers, virtual{})
	return int32(len(s.workers) - 1)
}

// leave lets a worker stand for another client.
func (s *scribe) leave(w int32) {
	if s.workers[w].free != history.Forever {
		s.free = append(s.free, w)
	}
}

// add keeps an operation and returns its place; -1 if it is not kept.
func (s *scribe) add(r *Reader, op history.Op) int {
	if len(s.ops) >= r.o.Most && !r.o.Rolling {
		r.Full = r.Full || r.o.Most > 0
		return -1
	}
	return s.append(op)
}

// append adds an operation, and returns its place.
func (s *scribe) append(op history.Op) int {
	v := &virtual{}
	if op.Worker >= 0 {
		v = &s.workers[op.Worker]
	}
	at := slices.IndexFunc(v.lanes, func(l lane) bool { return l.last <= op.Call && l.last != history.Forever })
	if at < 0 {
		at = len(v.lanes)
		v.lanes = append(v.lanes, lane{number: len(s.lanes)})
		s.lanes = append(s.lanes, 0)
	}
	l := &v.lanes[at]
	l.last = op.Return
	v.free = max(v.free, op.Latest())
	s.lanes[l.number]++
	op.ID = history.ID(l.number+1)<<40 | s.lanes[l.number]
	if op.Kind == history.Acquire && op.Hold == 0 {
		op.Hold = op.ID
	}
	s.ops = append(s.ops, op)
	return len(s.ops) - 1
}

// late completes operations of a request that was answered after they had to be told.
func (r *Reader) late(s *sighting) {
	for _, n := range s.ops {
		if s.Return != history.Forever && !s.Lost && (s.says != didNot || s.intent == runs) {
			r.ops[n].Return, r.ops[n].Outcome = s.Return, history.OK
		}
	}
}

const blindNote = "commands that were not seen may have had a lock: a connection was passed on unseen"

// incident tells that a server took a hold away, and no command that was seen did that.
func (s *scribe) incident(r *Reader, server int, key int32, from, to time.Duration, note string) {
	if n := s.add(r, incidentOf(server, key, from, to)); n >= 0 {
		s.notes[s.ops[n].ID] = note
	}
}

func incidentOf(server int, key int32, from, to time.Duration) history.Op {
	return history.Op{Kind: history.Incident, Worker: -1, Key: key, Value: int64(server), Call: from, Return: to,
		Outcome: history.OK}
}

// History is all that was read, as a judge takes it, with other operations, as faults are. The header's numbers are
// filled in. Over says that the programs have ended, so that keys in the servers are left for good.
func (r *Reader) History(with *history.History, over bool) *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(over)
	return r.written(r, with)
}

// end waits for nothing any more.
func (r *Reader) end(over bool) {
	r.now += effectBound + answerBound + groupBound
	for _, l := range r.ledgers {
		r.settle(l, history.Forever-1)
	}
	for _, b := range r.books {
		b.end(r)
	}
	r.pass()
	r.finish(over)
}

// SoFar is what is known of all that was read so far: nothing is waited for, and what later commands may tell is
// unknown.
func (r *Reader) SoFar(with *history.History) *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.scribe
	s.ops, s.lanes, s.notes = slices.Clone(s.ops), slices.Clone(s.lanes), maps.Clone(s.notes)
	s.undecide(true, r.promised())
	return s.written(r, with)
}

// written is what a scribe has, as a judge takes it.
func (s *scribe) written(r *Reader, with *history.History) *history.History {
	for _, op := range s.blind {
		n := s.append(incidentOf(int(op.Value), op.Key, op.Call, r.now))
		s.notes[s.ops[n].ID] = blindNote
	}
	for _, op := range with.Ops {
		if n := s.append(op); with.Notes[op.ID] != "" {
			s.notes[s.ops[n].ID] = with.Notes[op.ID]
		}
	}
	ops, notes := s.ops, s.notes
	if s.dropped > 0 {
		var all []noted
		for _, op := range ops {
			all = append(all, noted{op, notes[op.ID]})
		}
		ops, notes = relaid(all, len(s.workers), false)
	}
	return finished(&with.Header, ops, notes, counts{len(s.workers), len(r.pages), &r.Tallies})
}

// counts are the numbers of a history.
type counts struct {
	workers, keys int
	*Tallies
}

// finished is a history of operations.
func finished(header *history.Header, ops []history.Op, notes map[history.ID]string, c counts) *history.History {
	permits := c.Permits
	if permits <= 1 {
		permits = 0
		for i := range ops {
			ops[i].Permits = 0
		}
	}
	h := *header
	h.Workers, h.Keys, h.Processes = max(c.workers, 1), max(c.keys, 1), 1
	h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Reentrant: c.Reentrant, Permits: permits}
	out := &history.History{Header: h, Ops: ops, Notes: notes}
	slices.SortStableFunc(out.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	if c.Full {
		out.Partial = "more operations came than are kept"
	}
	return out
}

// promised tells whether it is certain whose a command is.
func (r *Reader) promised() bool { return r.o.Holder.By == ByConnection || r.o.Holder.By == ByArg }

// undecide makes answers unknown that only the connection can attribute, if connections serve several holders at a
// time, and those that took a hold from another holder who was not heard of again. It returns how many.
func (s *scribe) undecide(shared, promised bool) int64 {
	unsure := map[int]bool{}
	for _, n := range s.guesses {
		unsure[n] = shared && !promised
	}
	for _, list := range s.doubted {
		for _, n := range list {
			unsure[n] = !promised
		}
	}
	maps.DeleteFunc(unsure, func(n int, is bool) bool { return !is || n >= len(s.ops) })
	for n := range unsure {
		unknown(&s.ops[n], s.victims[n])
	}
	return int64(len(unsure))
}

// unknown makes an answer unknown, which may have ended the hold of a victim.
func unknown(op *history.Op, v *hold) {
	op.Outcome, op.Reason = history.Unknown, history.None
	if v != nil && v.id != 0 && op.Call >= v.from {
		op.Hold, op.Worker, op.Token = v.id, v.worker, v.mark
	}
}

// finish corrects operations by the knowledge of the end.
func (r *Reader) finish(over bool) {
	r.Guesses += r.undecide(r.Improper > 0, r.promised())
	r.settleData(r.promised())
	r.hidden()
	if over {
		r.left()
	}
}

// hidden tells of acquires whose first command was granted and had no answer, and whose next one was refused by their
// own grant.
func (r *Reader) hidden() {
	var sights []history.Op
	for _, n := range r.phantom {
		op := &r.ops[n]
		if op.Outcome == history.Unknown && !r.known[op.ID] {
			op.Outcome, op.Reason = history.Failed, history.Busy
			sights = append(sights, history.Op{Kind: history.Sight, Worker: -1, Key: op.Key, Token: op.Token,
				Until: op.Return + op.TTL, Call: op.Return, Return: op.Return, Outcome: history.OK})
		}
	}
	for _, op := range sights { // older operations may be forgotten for them
		r.add(r, op)
	}
}

// left tells of the keys that are in the servers at the end.
func (r *Reader) left() {
	for _, l := range r.ledgers {
		if v := r.server(l.server); !l.state.held() || !l.asked || !v.tapped || v.replica {
			continue
		}
		until := history.Forever
		if l.state.until != 0 {
			if _, until = r.ours(l.server, l.state.until); until <= r.now {
				continue
			}
		}
		for token := range l.state.owners {
			op := history.Op{Kind: history.Found, Worker: -1, Key: r.page(l.subject), Value: int64(l.server),
				Until: until, Call: r.now, Return: r.now, Outcome: history.OK}
			if h := l.book.of(token); h != nil {
				op.Token = h.mark
			}
			r.add(r, op)
		}
	}
}

// page numbers the keys.
func (r *Reader) page(s subject) int32 {
	n, ok := r.pages[s]
	if !ok {
		n = int32(len(r.pages))
		r.pages[s] = n
	}
	return n
}
