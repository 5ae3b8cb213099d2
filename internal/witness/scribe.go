package witness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

type Tallies struct {
	Requests, Effects int64 // those that concern locks
	Grants, Releases  int64
	Expiries, Refused int64
	Ambiguous         int64 // requests whose client is unknown
	Improper          int64 // signs that several holders share a connection
	// operations that became Unknown because only a connection shows their client
	Guesses    int64
	Outsiders  int64         // effects whose request was not seen
	Strange    int64         // keys with commands that the reader does not understand
	StrangeAs  string        // one of these commands; empty if only scripts are not understood
	Passed     int64         // connections that are forwarded without being parsed
	Lease      time.Duration // longest lease that was granted
	Unreleased int64         // holds that were not released
	Orphaned   int64         // holds that refused others long after their connection and their lease had ended
	InVain     int64         // tries that these holds refused
	Adrift     int64         // locks that were held when their server began another history, which may lack them
	Permits    int           // largest number of simultaneous holders of one lock, if a lock admits several
	Reentrant  bool
	Full       bool  // operations were lost, because Options.Most was reached
	TapsLost   int64 // streams that broke
	DataLoose  int64 // commands on data without a lock
	// stores of data that no command of a client explains: a script made them, or they came past the proxy
	DataUnrequested int64
	DataUnsure      int64    // data keys on which a read may have seen one of several stores
	Elsewhere       []string // the first keys that are no locks, before the first command on a lock
}

// scribe writes operations. Its workers are virtual: each hold in progress and each waiter has a worker number.
type scribe struct {
	ops     []history.Op
	notes   map[history.ID]string
	workers []virtual
	free    []freed              // free worker numbers, in the order in which they became free
	own     map[string][]int32   // by client: the free numbers that it had last
	lanes   []history.ID         // number of the last operation of each lane
	guesses []int                // indices of operations that only a connection attributes to a client
	victims map[int]*hold        // index of an operation -> the hold of another client that it ended
	doubted map[*hold][]int      // operations that took the lock from a hold, until its client is seen again
	known   map[history.ID]bool  // Acquires without a reply whose holders used the lock later
	phantom []int                // indices of Acquires that made the client's own next try fail: see hidden
	dropped int                  // number of operations that were removed from memory
	unheld  map[history.ID]int32 // releases in earlier pieces -> the worker, which held nothing
	pieces  int                  // number of pieces that have these operations
	passed  time.Duration        // time at which the last piece ends
	// Each Op in blind is the start of a time in which unseen commands may have changed a lock: the lock Key, or any
	// lock if Key is -1.
	blind []history.Op
}

type virtual struct {
	lanes []lane
	free  time.Duration // end of its last operation
	who   string        // the client that has it, or had it last
	idle  bool
	times int // how often it was given back
}

// freed is a worker number that was given back, and how often it had been given back by then. If virtual.times is
// greater now, its client has used the number again since.
type freed struct {
	worker int32
	times  int
}

type lane struct {
	number int
	last   time.Duration
}

// fewNumbers is the largest number of a client's free worker numbers that are tried. The longest
// unused one is tried first.
const fewNumbers = 4

// worker returns a worker number that was free before a given call. If possible, it is one that the same client had
// before. Then a story has one name for a client, and fairness is measured between clients.
func (s *scribe) worker(call time.Duration, who string) int32 {
	for i, w := range s.own[who][:min(len(s.own[who]), fewNumbers)] {
		if s.workers[w].free < call {
			s.own[who] = slices.Delete(s.own[who], i, i+1)
			s.workers[w].idle = false
			return w
		}
	}
	for len(s.free) > 0 {
		f := s.free[0]
		v := &s.workers[f.worker]
		if v.times == f.times && v.idle && v.free >= call-waiterBound {
			break // its client may need it again
		}
		if s.free = s.free[1:]; v.times == f.times && v.idle {
			list := s.own[v.who]
			i := slices.Index(list, f.worker)
			if s.own[v.who] = slices.Delete(list, i, i+1); len(list) == 1 {
				delete(s.own, v.who)
			}
			v.idle, v.who = false, who
			return f.worker
		}
	}
	s.workers = append(s.workers, virtual{who: who})
	return int32(len(s.workers) - 1)
}

// leave makes a worker number free.
func (s *scribe) leave(w int32) {
	v := &s.workers[w]
	if v.free == history.Forever || v.idle {
		return
	}
	v.idle = true
	v.times++
	s.free, s.own[v.who] = append(s.free, freed{w, v.times}), append(s.own[v.who], w)
}

// add adds an operation and returns its index; -1 if it is not kept.
func (s *scribe) add(r *Reader, op history.Op) int {
	if len(s.ops) >= r.o.Most && !r.o.Rolling {
		r.Full = r.Full || r.o.Most > 0
		return -1
	}
	if n := len(s.ops); r.o.Rolling && n == cap(s.ops) {
		s.ops = slices.Grow(s.ops, n+pieceRoom) // Most bounds it, so that it need not grow in small steps
	}
	return s.append(op)
}

// append adds an operation, and returns its index.
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

// late completes operations that had to be written before their request was answered.
func (r *Reader) late(s *sighting) {
	for _, n := range s.ops {
		if s.Return != history.Forever && !s.Lost && (s.says != didNot || s.intent == runs) {
			r.ops[n].Return, r.ops[n].Outcome = s.Return, history.OK
		}
	}
}

const blindNote = "commands that were not seen may have had a lock: a connection was passed on unseen"

// incident adds an Incident: a server lost a hold, and no command that was seen did that.
func (s *scribe) incident(r *Reader, server int, key int32, from, to time.Duration, note string) {
	if n := s.add(r, incidentOf(server, key, from, to)); n >= 0 {
		s.notes[s.ops[n].ID] = note
	}
}

func incidentOf(server int, key int32, from, to time.Duration) history.Op {
	return history.Op{Kind: history.Incident, Worker: -1, Key: key, Value: int64(server), Call: from, Return: to,
		Outcome: history.OK}
}

// History returns everything that was read, merged with the operations of the argument with, such as faults. It fills
// in the header's numbers. If over is true, the programs have ended: keys that still exist then were left behind.
func (r *Reader) History(with *history.History, over bool) *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(over)
	return r.written(r, with)
}

// end stops waiting for replies and effects, and completes all operations. If over is true, the programs have ended.
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

// SoFar returns the history so far without waiting. Outcomes that depend on later commands are Unknown.
func (r *Reader) SoFar(with *history.History) *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.scribe
	s.ops, s.lanes, s.notes = slices.Clone(s.ops), slices.Clone(s.lanes), maps.Clone(s.notes)
	s.undecide(true, r.promised())
	return s.written(r, with)
}

// written makes a history of the scribe's operations.
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
	h := finished(&with.Header, ops, notes, counts{len(s.workers), len(r.pages), &r.Tallies})
	h.Names = pageNames(r.pages, func(s subject) string { return s.key })
	return h
}

type counts struct {
	workers, keys int
	*Tallies
}

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

// promised tells whether the user has said how a command shows its client: by its connection or by an argument.
func (r *Reader) promised() bool { return r.o.Holder.By == ByConnection || r.o.Holder.By == ByArg }

// undecide makes uncertain operations Unknown, and returns their number. An operation is uncertain in two cases. (1)
// Only its connection shows its client, and clients share connections (shared). (2) It has ended the hold of a
// client that was not seen again. If promised is true, the user has said how a command shows its client, so no
// operation is uncertain.
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

// unknown makes an operation's outcome Unknown. The operation may have ended the hold of the victim v, which may be
// nil.
func unknown(op *history.Op, v *hold) {
	op.Outcome, op.Reason = history.Unknown, history.None
	if v != nil && v.id != 0 && op.Call >= v.from {
		op.Hold, op.Worker, op.Token = v.id, v.worker, v.mark
	}
}

// finish corrects operations with the knowledge that exists only at the end. If over is true, the programs have ended.
func (r *Reader) finish(over bool) {
	r.Guesses += r.undecide(r.Improper > 0, r.promised())
	r.settleData(r.promised())
	r.hidden()
	if over {
		r.left()
	}
}

// hidden corrects an Acquire whose first command was granted, but got no reply. The grant made the client's own
// second command fail, so the Acquire as a whole was refused.
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
	for _, op := range sights { // to make room for them, older operations may be dropped
		r.add(r, op)
	}
}

// left adds an operation for each lock key that still exists on the servers.
func (r *Reader) left() {
	for _, l := range r.ledgers {
		if v := l.home; !l.state.held() || !l.asked || !v.tapped || v.replica {
			continue
		}
		until := history.Forever
		if l.state.until != 0 {
			if _, until = r.ours(l.home, l.state.until); until <= r.now {
				continue
			}
		}
		for _, o := range l.state.owners {
			op := history.Op{Kind: history.Found, Worker: -1, Key: r.page(l.book), Value: int64(l.server),
				Until: until, Call: r.now, Return: r.now, Outcome: history.OK}
			if h := l.book.of(o.token); h != nil {
				op.Token = h.mark
			}
			r.add(r, op)
		}
	}
}

// page returns the number of a book's lock. The book keeps it until the numbers change.
func (r *Reader) page(b *book) int32 {
	if b.edition != r.edition {
		n, ok := r.pages[b.subject]
		if !ok {
			n = int32(len(r.pages))
			r.pages[b.subject] = n
		}
		b.page, b.edition = n, r.edition
	}
	return b.page
}
