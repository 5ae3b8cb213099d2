package workload

import (
	"context"
	"math"
	"slices"
	"time"

	"hammerlock/history"
)

// Rate is the number of visits that become due per second during a Stretch. It changes linearly from First to Last. A
// sine wave of the given Amplitude may be added.
type Rate struct {
	First, Last float64
	Amplitude   float64
	Period      time.Duration // period of the wave; used only with an Amplitude
}

// Stretch is a part of a run with its own load.
type Stretch struct {
	From, To time.Duration
	Rate     Rate
	Burst    int // open loop: number of additional visits that are due together, at From
	Workers  int // closed loop: only this many workers visit, those with the lowest numbers; 0 = all
}

// constant tells whether the rate never changes.
func (r Rate) constant() bool { return r.First == r.Last && r.Amplitude == 0 }

// due returns the number of visits that become due from the beginning of the stretch until the time at. This is the
// integral of the rate.
func (s *Stretch) due(at time.Duration) float64 {
	t, length := (at - s.From).Seconds(), (s.To - s.From).Seconds()
	n := s.Rate.First*t + (s.Rate.Last-s.Rate.First)*t*t/(2*length)
	if s.Rate.Amplitude != 0 {
		turn := 2 * math.Pi / s.Rate.Period.Seconds()
		n += s.Rate.Amplitude / turn * (1 - math.Cos(turn*t))
	}
	return n
}

// Visits is the number of visits that become due in the stretch; with Poisson arrivals it is the mean.
func (s *Stretch) Visits() float64 { return float64(s.Burst) + s.due(s.To) }

// after returns the time at which n visits have become due, counted from the time at. At least n visits must be
// left in the stretch.
func (s *Stretch) after(at time.Duration, n float64) time.Duration {
	if s.Rate.constant() {
		return at + time.Duration(n/s.Rate.First*float64(time.Second))
	}
	n += s.due(at)
	low, high := at, s.To // due never decreases, so bisection finds the time
	for high-low > 1 {
		if middle := low + (high-low)/2; s.due(middle) < n {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// pace draws the due times of visits from a constant rate, from stretches, or from a trace. It must be used by one
// goroutine.
type pace struct {
	shape *Shape
	step  func() float64 // draws the distance between two arrivals, in visits; its mean is 1
	drawn int            // number of visits drawn from the trace, or from the burst of the stretch

	stretch int
	at      time.Duration // due time of the last visit, or the beginning of the stretch
	left    float64       // part of the last step that lies beyond its stretch; 0 = none
}

// next returns the due time of the next visit; history.Forever = no more visits. The argument is the due time of the
// visit before.
func (p *pace) next(last time.Duration) time.Duration {
	switch {
	case len(p.shape.Stretches) > 0:
		return p.inStretches()
	case len(p.shape.Trace) > 0:
		return p.listed()
	}
	return last + time.Duration(p.step()*float64(time.Second)/p.shape.Rate)
}

func (p *pace) first() time.Duration {
	if len(p.shape.Stretches)+len(p.shape.Trace) == 0 {
		return 0
	}
	return p.next(0)
}

func (p *pace) listed() time.Duration {
	if p.drawn == len(p.shape.Trace) {
		return history.Forever
	}
	p.drawn++
	return p.shape.Trace[p.drawn-1]
}

func (p *pace) inStretches() time.Duration {
	for ; p.stretch < len(p.shape.Stretches); p.stretch++ {
		s := &p.shape.Stretches[p.stretch]
		if p.drawn < s.Burst {
			p.drawn++
			return s.From
		}
		if p.at = max(p.at, s.From); p.left == 0 {
			p.left = p.step()
		}
		if rest := s.due(s.To) - s.due(p.at); p.left >= rest {
			p.left -= rest // the rest of a step continues in the next stretch, at that stretch's rate
			p.drawn = 0
			continue
		}
		p.at = s.after(p.at, p.left)
		p.left = 0
		return p.at
	}
	return history.Forever
}

// Resting returns the beginning and the end of the pause that ends the current round of load.
func (s *Shape) Resting(now time.Duration) (from, to time.Duration) {
	round := s.End / time.Duration(s.Rounds)
	to = (now/round + 1) * round
	return to - s.Rest, to
}

// takesPart waits until this worker of a closed loop may visit. It returns false if the worker may not visit again.
func (w *worker) takesPart(stop context.Context) bool {
	all := w.shape.Stretches
	if w.shape.Rounds > 0 {
		if from, to := w.shape.Resting(w.now); w.now >= from {
			if !w.sleep(stop, to-w.now) {
				return false
			}
			w.now = w.clock.Now()
		}
	}
	for {
		i := slices.IndexFunc(all, func(s Stretch) bool { return w.now < s.To })
		if i < 0 || all[i].Workers == 0 || w.shape.First+w.number < all[i].Workers {
			return stop.Err() == nil
		}
		if !w.sleep(stop, all[i].To-w.now) {
			return false
		}
		w.now = w.clock.Now()
	}
}
