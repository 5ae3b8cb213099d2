package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// Advice on wrong counts of a service. Without it, the advice is that of the cause: a lost update by concurrent visits.
const (
	adviseDurable = "The lost visits can have been acknowledged before a program was killed and before their count " +
		"was stored durably: acknowledge a visit only after its count is stored outside the program's memory. If " +
		"views are lost without --fault, too, add in one atomic step."
	adviseAddress = "The count did not move. Check that --visit has the address and the method that count a view, " +
		"and that --count asks for the count that these visits change, which no cache may answer."
	adviseReplay = "No two visits with the same count overlapped, so concurrency does not explain it: look for a " +
		"cache, or for a replay of an earlier answer, such as an idempotency key that several visits share."
)

// killProgram is the name of the fault that kills a program of a service. A judgement must not depend on the name of a
// fault, but advice may.
const killProgram = "kill-program"

// adviseVisits replaces the advice of a failed verdict if the visits suggest another reason than concurrency.
func (c *Case) adviseVisits(v *Verdict, pages []served) {
	var acknowledged, final, lost, equal int64
	killed, apart := true, true
	for i := range pages {
		p := &pages[i]
		acknowledged, final, lost = acknowledged+p.acknowledged(), final+p.final, lost+p.lost()
		killed = killed && p.lost() <= c.acknowledgedBeforeKill(int32(i))
		for n := 1; n < len(p.told); n++ {
			a, b := p.told[n-1], p.told[n]
			if a.Value != b.Value {
				continue
			}
			equal++
			killed, apart = killed && c.killedBetween(a, b), apart && a.Return <= b.Call
		}
	}
	switch {
	case v.Status != Fail || v.Cause != history.LostUpdate && v.Cause != history.Duplicate:
	case lost > 0 && killed:
		v.advise(adviseDurable)
	case lost > 0 && final == 0 && lost == acknowledged:
		v.advise(adviseAddress)
	case equal > 0 && apart:
		v.advise(adviseReplay)
	}
}

// acknowledgedBeforeKill counts the acknowledged visits to a page that began before a program was killed.
func (c *Case) acknowledgedBeforeKill(page int32) (n int64) {
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind == history.Store && op.Outcome == history.OK && op.Key == page && c.kills(op.Call, history.Forever) {
			n++
		}
	}
	return n
}

// killedBetween tells whether b began after the answer to a, and a program was killed between the call of a and the
// answer to b.
func (c *Case) killedBetween(a, b *history.Op) bool {
	return a.Return <= b.Call && c.kills(a.Call, b.Return)
}

// kills tells whether a program of the service was killed between two times.
func (c *Case) kills(from, to time.Duration) bool {
	return slices.ContainsFunc(c.windows, func(w window) bool {
		kill := &c.Ops[w.op]
		return w.fault && w.name == killProgram && kill.Return >= from && kill.Call <= to
	})
}
