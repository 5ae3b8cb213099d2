package checker

import (
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/model"
)

// account lists the violations in the story of a page. A story is an order of events that explains all answers of the
// page. If there are several, the cheapest one is taken, with the fewest and mildest violations: see package model.
type account struct {
	slips  []slip
	broke  map[int32]int   // hold -> the first slip that ended it although its lease was guaranteed
	ofHold map[int32][]int // hold -> the slips of this hold, and those that harmed it
	shared bool            // holds of the page share the lock (readers, or permits)
	untold bool            // there is no story: the model does not support the page, or found none in time
	loose  freeing         // set if shared: releases of holds that had already ended
}

func newAccount() *account { return &account{broke: map[int32]int{}, ofHold: map[int32][]int{}} }

func noStory(shared bool) *account { return &account{untold: true, shared: shared} }

// slip is a step of a story that a correct lock makes only if its servers forget something.
type slip struct {
	model.Step
	hold, against int32   // indices in Case.holds; -1 = none
	op            int32   // index of the call in Ops
	first         int     // index of the earlier slip that caused this one; its own index if none did
	why           *window // what made servers forget; nil if the lock is wrong
	told          bool    // a double grant was already explained by this slip
}

// freeing is a list of releases, given by their indices in Ops and sorted by call. The time until[i] is the latest
// return of ops[0] to ops[i].
type freeing struct {
	ops   []int32
	until []time.Duration
}

// robbed reports whether a release of another hold ended hold n.
func (t *account) robbed(n int32) bool {
	k, ok := t.broke[n]
	return ok && t.slips[k].deviates(history.ForeignRelease)
}

// knows reports whether the account already has the deviation of step x in hold h. Another story may have found it.
func (t *account) knows(h int32, x *model.Step) bool {
	return x.Deviation != nil && slices.ContainsFunc(t.ofHold[h], func(n int) bool {
		k := &t.slips[n]
		return k.hold == h && k.Deviation == x.Deviation && k.Call == x.Call
	})
}

func (k *slip) deviates(cause string) bool { return k.Deviation != nil && k.Deviation.Name == cause }

// of returns the index of the slip that explains why the two holds of a pair overlap; -1 if no slip does. Such a slip
// belongs to one of the two holds, or ended one of them although its lease was guaranteed. If there are several, slips
// of the lock come before data losses of the servers, because the lock is wrong in any case.
func (t *account) of(p pair) int {
	best, class := -1, 4
	look := func(n int, broke bool) {
		if d := t.slips[n].Deviation; !broke && d != nil && d.Keeps {
			return
		}
		at := 3
		switch deviates := t.slips[n].Deviation != nil; {
		case broke && deviates:
			at = 0
		case deviates:
			at = 1
		case broke:
			at = 2
		}
		if at < class || at == class && n < best {
			best, class = n, at
		}
	}
	for _, h := range [2]int32{p.first, p.second} {
		for _, n := range t.ofHold[h] {
			look(n, false)
		}
		if n, ok := t.broke[h]; ok {
			look(n, true)
		}
	}
	return best
}

// pair has two holds that collide; first is the earlier one.
type pair struct{ first, second int32 }

// finding is one violation with its cause.
type finding struct {
	cause string
	pair  pair    // the earlier hold and the later one; -1 = none
	op    int32   // index of further evidence in Ops; -1 = none
	why   *window // the window that explains it; nil = none does

	follows bool // it is a consequence of an earlier violation
	again   bool // an earlier finding has the same origin
}

// findings is the result of the exclusion checker.
type findings struct {
	blames[finding]
	incidents map[string]int64 // cause -> violations that are not a consequence of an earlier one
	losses    []pair           // the first few grants that contradict the servers' promises
	misses    map[string]int64
	doubled   int64 // number of holds whose holder certainly relied on the lock at the same time as an earlier holder
}
