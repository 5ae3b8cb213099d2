package results

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
)

// GeneratorState is how far the load generator can be trusted.
type GeneratorState string

// The states.
const (
	GeneratorOK GeneratorState = "OK"
	Suspect     GeneratorState = "SUSPECT"
	Saturated   GeneratorState = "SATURATED"
)

// Generator is the generator's judgement of itself.
type Generator struct {
	State   GeneratorState `json:"state"`
	Reasons []string       `json:"reasons"`
	Load
	LateP99 int64 `json:"late_p99_ns"` // of the open loop's schedule
	LateMax int64 `json:"late_max_ns"`
}

// Load is what the measurement cost this machine while it went on.
type Load struct {
	OpenLoop      bool    `json:"open_loop"`
	OwnCPU        float64 `json:"own_cpu"`     // share of the cores this process may use
	MachineCPU    float64 `json:"machine_cpu"` // share of all cores; negative if unknown
	GCPauseMax    int64   `json:"gc_pause_max_ns"`
	SchedulingP99 int64   `json:"scheduling_p99_ns"` // goroutines that could run but did not
	PoolWaits     int64   `json:"pool_waits"`        // times a worker waited for a connection
	Stalls        int64   `json:"stalls"`            // times a worker waited to record
}

// limit is a symptom with the values from which on it makes the generator suspect and saturated.
type limit struct {
	value, suspect, saturated float64
	text                      string
}

// judge reads the symptoms. The limits are conventions: a tenth of a millisecond of lateness is the timers' own,
// ten are a queue; above three quarters of the machine latencies begin to be about its cores.
func (m *Meter) judge(l Load) Generator {
	late := m.Late.Quantile(0.99)
	g := Generator{State: GeneratorOK, Reasons: []string{}, Load: l, LateP99: int64(late), LateMax: int64(m.Late.max)}
	ms := float64(time.Millisecond)
	limits := []limit{
		{l.MachineCPU, 0.75, 0.95, fmt.Sprintf("machine %.0f %% busy", 100*l.MachineCPU)},
		{l.OwnCPU, 0.50, 0.85, fmt.Sprintf("generator uses %.0f %% of the cores", 100*l.OwnCPU)},
		{float64(l.GCPauseMax), 2 * ms, 20 * ms, fmt.Sprintf("a GC pause of %s", human.Duration(time.Duration(l.GCPauseMax)))},
		{float64(l.SchedulingP99), 2 * ms, 20 * ms, fmt.Sprintf("goroutines wait %s for a core (p99)", human.Duration(time.Duration(l.SchedulingP99)))},
		{float64(l.PoolWaits), 1, float64(max(m.Visits.Begun/10, 2)), fmt.Sprintf("%s waits for a connection", human.Count(l.PoolWaits))},
		{float64(l.Stalls), 1, float64(max(m.ops/1000, 2)), fmt.Sprintf("%s waits to record", human.Count(l.Stalls))},
	}
	if l.OpenLoop {
		limits = append(limits, limit{float64(late), 1 * ms, 10 * ms, fmt.Sprintf("visits begin %s late (p99)", human.Duration(late))})
	} else {
		g.State = Suspect
		g.Reasons = append(g.Reasons, "closed loop on the servers' cores")
	}
	for _, s := range limits {
		switch {
		case s.value >= s.saturated:
			g.State = Saturated
		case s.value < s.suspect:
			continue
		case g.State == GeneratorOK:
			g.State = Suspect
		}
		g.Reasons = append(g.Reasons, s.text)
	}
	return g
}
