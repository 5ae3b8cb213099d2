package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
)

// fact is an event that a run may record and that cannot have caused the violation: it happened on another server, or
// too early, or too late.
type fact struct {
	name string
	put  func(*facts)
}

// facts adds irrelevant events to a copy of a history. The copy is shifted in time, to make room before the
// first call.
type facts struct {
	h                   *history.History
	n                   uint64 // number of the suite's operations
	first, middle, last time.Duration
}

const (
	elsewhere = 99               // a server that the lock does not use, perhaps the counter's
	ahead     = 10 * time.Second // shift of the history, which makes room before it
)

var irrelevant = []fact{
	{"node 99 ended at the start", func(f *facts) {
		f.add(history.Incident, elsewhere, 0, time.Millisecond,
			history.Forever)
	}},
	{"node 99 did not answer for 10 ms",
		func(f *facts) { f.add(history.Incident, elsewhere, 0, f.middle, f.middle+10*time.Millisecond) }},
	{"node 99 took another role", func(f *facts) {
		f.add(history.Role, elsewhere, 0, f.middle,
			f.middle+10*time.Millisecond)
	}},
	{"node 0 failed before the first call", func(f *facts) {
		f.add(history.Incident, 0, 0, f.first-102*time.Millisecond, f.first-2*time.Millisecond)
	}},
	{"node 0 took another role before the first call",
		func(f *facts) { f.add(history.Role, 0, 0, f.first-102*time.Millisecond, f.first-2*time.Millisecond) }},
	{"node 0 failed after the last return",
		func(f *facts) { f.add(history.Incident, 0, 0, f.last, f.last+100*time.Millisecond) }},
	{"all were paused before the first call",
		func(f *facts) { f.add(history.Gap, 1, 0, f.first-time.Second, f.first-2*time.Millisecond) }},
	{"all were paused after the last return", func(f *facts) { f.add(history.Gap, 1, 0, f.last, f.last+time.Second) }},
	{"a process without workers was paused", func(f *facts) { f.stranger(f.middle, f.middle+100*time.Millisecond) }},
	{"a process without workers was stopped by a fault", func(f *facts) {
		f.stranger(f.middle, f.middle+100*time.Millisecond)
		f.plan(hits(history.Clients), f.middle, f.middle+100*time.Millisecond)
	}},
	{"late messages before the first call",
		func(f *facts) { f.plan(hits(history.Links), f.first-102*time.Millisecond, f.first-2*time.Millisecond) }},
	{"a wrong clock before the first call", func(f *facts) {
		f.plan(history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime},
			f.first-102*time.Millisecond, f.first-2*time.Millisecond)
	}},
	{"a fault that hits nobody", func(f *facts) {
		f.plan(hits(history.Nobody), f.middle,
			f.middle+100*time.Millisecond)
	}},
	{"late messages after the last return",
		func(f *facts) { f.plan(hits(history.Links), f.last, f.last+100*time.Millisecond) }},
	{"a worker stopped after the last return",
		func(f *facts) { f.plan(hits(history.Holders), f.last, f.last+100*time.Millisecond) }},
}

// hide adds each fact to a copy of a failing history, one fact at a time. It returns the names of the facts with which
// the judge no longer fails the history.
func hide(h *history.History) map[string]bool {
	base := judge(copied(h).h)
	if len(base.fails) == 0 {
		return map[string]bool{"all of it is later": true}
	}
	hidden := map[string]bool{}
	pages := only(base.fails, "lost-updates:")
	for _, fact := range irrelevant {
		if pages && strings.HasPrefix(fact.name, "node") {
			continue
		}
		f := copied(h)
		fact.put(f)
		slices.SortStableFunc(f.h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		if len(judge(f.h).fails) == 0 {
			hidden[fact.name] = true
		}
	}
	return hidden
}

// copied returns a copy of a history, shifted in time by the constant ahead.
func copied(h *history.History) *facts {
	n := *h
	n.Ops, n.Faults = slices.Clone(h.Ops), slices.Clone(h.Faults)
	f := &facts{h: &n, first: history.Forever}
	for i := range n.Faults {
		n.Faults[i].From += ahead
		n.Faults[i].To += ahead
	}
	for i := range n.Ops {
		op := &n.Ops[i]
		op.Call += ahead
		for _, t := range []*time.Duration{&op.Return, &op.Until, &op.Due} {
			if *t != history.Forever && *t != 0 {
				*t += ahead
			}
		}
		if op.ID.Lane() == 0 {
			f.n = max(f.n, op.ID.Number())
		}
		f.first, f.last = min(f.first, op.Call), max(f.last, op.Latest())
	}
	f.middle, f.last = (f.first+f.last)/2, f.last+10*time.Millisecond
	return f
}

func (f *facts) add(k history.Kind, value int64, process int16, from, to time.Duration) {
	f.n++
	f.h.Ops = append(f.h.Ops, history.Op{ID: history.ID(1)<<40 | history.ID(f.n), Kind: k, Outcome: history.OK,
		Worker: -1, Key: -1, Value: value,
		Process: process, Call: from, Return: to})
	if to == history.Forever {
		f.h.Ops[len(f.h.Ops)-1].Outcome = history.Unknown
	}
}

// stranger adds a paused process without workers.
func (f *facts) stranger(from, to time.Duration) {
	f.h.Processes++
	f.add(history.Gap, 0, int16(f.h.Processes-1), from, to)
}

func (f *facts) plan(e history.Effect, from, to time.Duration) {
	n := int64(len(f.h.Faults))
	f.h.Faults = append(f.h.Faults, history.Injection{Name: "irrelevant", From: from, To: to, Effect: e})
	f.add(history.Fault, n, 0, from, from+time.Millisecond)
	f.add(history.Heal, n, 0, to-time.Millisecond, to)
}
