package explore

import (
	"fmt"
	"math"
	"time"
)

// Progress is the progress of an exploration.
type Progress struct {
	// Deviations is the number of deviations in the current schedules; for random schedules, the largest number.
	Deviations int           `json:"deviations"`
	Run        int           `json:"run"`               // number of these schedules that have run
	Of         int           `json:"of,omitempty"`      // number of these schedules; 0 = as many as there is time for
	Further    int           `json:"further,omitempty"` // rough number of schedules that follow, with more deviations
	Random     bool          `json:"random,omitempty"`
	Schedules  int           `json:"schedules"`         // number of all schedules that have run
	Speed      float64       `json:"speed"`             // schedules per second
	Left       time.Duration `json:"left_ns,omitempty"` // rest of the budget; 0 = no limit
}

// tellEvery is the interval between two reports of progress.
const tellEvery = 200 * time.Millisecond

// tell reports the progress, unless it did so less than tellEvery ago.
func (s *search) tell(p Progress) {
	if s.o.tell == nil || time.Since(s.told) < tellEvery {
		return
	}
	s.told = time.Now()
	for k, more := p.Deviations+1, float64(p.Of); !p.Random && k <= s.o.Deviations; k++ {
		more *= float64(s.single) / float64(k) // of the k! orders of k deviations, one is run
		p.Further += int(more)
	}
	p.Schedules = s.report.ran()
	p.Speed = float64(p.Schedules) / time.Since(s.begun).Seconds()
	if s.o.Budget > 0 {
		p.Left = max(s.o.Budget-time.Since(s.begun), time.Millisecond)
	}
	s.o.tell(p)
}

func (p Progress) String() string {
	var text string
	switch {
	case p.Random && p.Of == 0:
		text = fmt.Sprintf("%d random schedules with up to %s", p.Run, counted(p.Deviations, "deviation"))
	case p.Random:
		text = fmt.Sprintf("%d of %d random schedules", p.Run, p.Of)
	default:
		text = fmt.Sprintf("with %s %d of %d schedules", counted(p.Deviations, "deviation"), p.Run, p.Of)
	}
	if p.Further > 0 {
		text += fmt.Sprintf(", then about %d with more", p.Further)
	}
	text += fmt.Sprintf(", %.0f a second", p.Speed)
	if p.Of > 0 && p.Speed > 0 {
		text += fmt.Sprintf(", about %v to go", seconds(float64(p.Of-p.Run+p.Further)/p.Speed))
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", %v of the budget left", seconds(p.Left.Seconds()))
	}
	return text
}

// Last returns the progress at the end of an exploration. Its Of counts the schedules that were not run.
func (r *Report) Last() Progress {
	p := Progress{Deviations: max(len(r.Levels)-1, 0), Schedules: r.ran()}
	for _, l := range r.Levels {
		p.Of += l.Left
	}
	if r.Beyond.schedules() > 0 {
		p.Deviations = r.Beyond.Deviations
	}
	if r.Took > 0 {
		p.Speed = float64(p.Schedules) / r.Took.Seconds()
	}
	return p
}

// Remaining returns the rough number of schedules that still have to run; 0 = unknown, or none.
func (p *Progress) Remaining() int { return max(p.Of-p.Run, 0) + p.Further }

// seconds converts a number of seconds to a duration, rounded up to whole seconds.
func seconds(s float64) time.Duration { return time.Duration(math.Ceil(s)) * time.Second }

// Power describes the probability with which the random schedules would have found a bug of a given depth, which is
// the number of deviations that the bug needs. It is a lower bound like that of PCT (Burckhardt et al. 2010). PCT
// counts preemptions of threads, and this counts deviations.
func (b *Beyond) Power() string {
	if b.schedules() == 0 || b.Options < 2 {
		return ""
	}
	text := fmt.Sprintf("random schedules would have found a bug that one in 1000 shows with a probability of\n"+
		"%s", b.found(1e-3))
	for depth := b.Fewest; depth < b.Fewest+3 && depth <= b.Deviations; depth++ {
		text += fmt.Sprintf(", one of depth %d with at least %s", depth, b.found(b.once(depth)))
	}
	return text + fmt.Sprintf(";\nits depth is how many certain deviations it needs, "+
		"each one of %d options at one of %d decisions", b.Options-1, b.Decisions)
}

// once returns the probability that one random schedule has exactly a certain set of deviations. The set has depth
// deviations, and each is at a certain decision with a certain option.
func (b *Beyond) once(depth int) float64 {
	p := 1 / float64(b.Deviations-b.Fewest+1)
	for k := range depth {
		p *= float64(k+1) / max(float64(b.Decisions-k), 1) / float64(b.Options-1)
	}
	return min(p, 1)
}

// found returns, in percent, the probability that at least one of the schedules finds the bug, if each schedule finds
// it with the probability once.
func (b *Beyond) found(once float64) string {
	return fmt.Sprintf("%.3g %%", min(-100*math.Expm1(float64(b.Schedules)*math.Log1p(-once)), 99.9))
}
