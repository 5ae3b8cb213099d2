package measure

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// limit is a symptom of an overloaded load generator. If its value is at least suspect, the generator is suspect. If
// the value is at least saturated, the generator is saturated.
type limit struct {
	value, suspect, saturated float64
	text                      string
}

// Shares of the CPU cores, 0 to 1. If other programs or the hypervisor use at least suspectOthers, the generator is
// suspect. It is disturbed if both together use at least disturbing, and the whole machine uses at least halfBusy.
const suspectOthers, disturbing, halfBusy = 0.1, 0.25, 0.5

// judge decides whether the load generator distorts the measurement. The limits are conventions. Timers, for example,
// are normally 0.1 ms late; at 10 ms there is a queue. If three quarters of the CPU are used, latencies depend on the
// machine. Any recorded pause of a process makes the generator at least suspect.
func (m *Meter) judge(u results.Usage) results.Generator {
	late := m.late.quantile(0.99)
	g := results.Generator{State: results.GeneratorOK, Reasons: []string{}, Usage: u, LateP99: int64(late),
		LateMax: int64(m.late.max)}
	ms := float64(time.Millisecond)
	programs, stolen := max(u.OthersCPU, 0), max(u.StolenCPU, 0)
	others := programs + stolen
	limits := []limit{
		{programs, suspectOthers, 1, fmt.Sprintf("other programs use %.0f %% of the cores", 100*programs)},
		{stolen, suspectOthers, 1, fmt.Sprintf("the hypervisor takes %.0f %% of the cores", 100*stolen)},
		{u.MachineCPU - others, 0.75, 0.95, fmt.Sprintf("machine %.0f %% busy", 100*u.MachineCPU)},
		{u.OwnCPU, 0.50, 0.85, fmt.Sprintf("generator uses %.0f %% of the cores", 100*u.OwnCPU)},
		{float64(u.GCPauseMax), 2 * ms, 20 * ms,
			fmt.Sprintf("a GC pause of %s", human.Duration(time.Duration(u.GCPauseMax)))},
		{float64(u.SchedulingP99), 2 * ms, 20 * ms,
			fmt.Sprintf("goroutines wait %s for a core (p99)", human.Duration(time.Duration(u.SchedulingP99)))},
		{float64(u.PoolWaits), 1, float64(max(m.visits.Begun/10, 2)),
			fmt.Sprintf("%s waits for a connection", human.Count(u.PoolWaits))},
		{float64(u.Stalls), 1, float64(max(m.ops/1000, 2)), fmt.Sprintf("%s waits to record", human.Count(u.Stalls))},
	}
	if m.stoodAt+m.stood > m.from {
		limits = append(limits, limit{float64(m.stood), 1, 250 * ms,
			fmt.Sprintf("paused for %s at %s", human.Duration(m.stood), human.Duration(m.stoodAt))})
	}
	if u.OpenLoop {
		limits = append(limits, limit{float64(late), 1 * ms, 10 * ms,
			fmt.Sprintf("visits begin %s late (p99)", human.Duration(late))})
	} else {
		g.State = results.Suspect
		g.Reasons = append(g.Reasons, "closed loop on the servers' cores")
	}
	for _, s := range limits {
		switch {
		case s.value >= s.saturated:
			g.State = results.Saturated
		case s.value < s.suspect:
			continue
		case g.State == results.GeneratorOK:
			g.State = results.Suspect
		}
		g.Reasons = append(g.Reasons, s.text)
	}
	if others >= disturbing && u.MachineCPU >= halfBusy { // with idle cores, other programs cause no delay
		g.State = results.Disturbed
	}
	return g
}
