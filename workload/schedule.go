package workload

import (
	"context"
	"math"
	"slices"
	"time"

	"hammerlock/history"
)

// Rate is how many visits a second are due in a stretch: First at its begin, Last at its end, evenly in between, with a
// sine wave around that.
type Rate struct {
	First, Last float64
	Amplitude   float64
	Period      time.Duration // of the wave; used with an Amplitude only
}

// Stretch is a part of a schedule with a load of its own.
type Stretch struct {
	From, To time.Duration
	Rate     Rate
	Burst    int // open loop: so many visits more are due at From, all at once
	Workers  int // closed loop: only the first so many visit; 0 = all
}

// constant tells whether the rate stays the same all the time.
func (r Rate) constant() bool { return r.First == r.Last && r.Amplitude == 0 }

// due is how many visits are due by the rate from the begin of the stretch to a moment: the integral of the rate.
func (s *Stretch) due(at time.Duration) float64 {
	t, length := (at - s.From).Seconds(), (s.To - s.From).Seconds()
	n := s.Rate.First*t + (s.Rate.Last-s.Rate.First)*t*t/(2*length)
	if s.Rate.Amplitude != 0 {
		turn := 2 * math.Pi / s.Rate.Period.Seconds()
		n += s.Rate.Amplitude / turn * (1 - math.Cos(turn*t))
	}
	return n
}

// Visits is how many visits are due in the stretch; with Poisson arrivals that is the mean, but for the burst.
func (s *Stretch) Visits() float64 { return float64(s.Burst) + s.due(s.To) }

// after is when n visits more are due than at a moment. There must be so many left.
func (s *Stretch) after(at time.Duration, n float64) time.Duration {
	if s.Rate.constant() {
		return at + time.Duration(n/s.Rate.First*float64(time.Second))
	}
	n += s.due(at)
	low, high := at, s.To // due never falls, so bisection finds it
	for high-low > 1 {
		if middle := low + (high-low)/2; s.due(middle) < n {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// pace draws when visits are due: by a constant rate, by that of stretches, or by a list. It is used by one goroutine.
type pace struct {
	shape *Shape
	step  func() float64 // draws the visits between one and the next, 1 on average
	drawn int            // of a list, or of the burst of the stretch

	stretch int
	at      time.Duration // the last one that was due by the rate, or the begin of the stretch
	left    float64       // of the last step; 0 = none
}

// next is when the visit after the one at a time is due; history.Forever if it was the last.
func (p *pace) next(last time.Duration) time.Duration {
	switch {
	case len(p.shape.Stretches) > 0:
		return p.inStretches()
	case len(p.shape.Trace) > 0:
		return p.listed()
	}
	return last + time.Duration(p.step()*float64(time.Second)/p.shape.Rate)
}

// first is when the first visit is due.
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
			p.left -= rest // what is left of a step goes on in the next stretch, at its rate
			p.drawn = 0
			continue
		}
		p.at = s.after(p.at, p.left)
		p.left = 0
		return p.at
	}
	return history.Forever
}

// Resting is when the rest begins and ends of the round that a moment is in, of a load that comes in rounds.
func (s *Shape) Resting(now time.Duration) (from, to time.Duration) {
	round := s.End / time.Duration(s.Rounds)
	to = (now/round + 1) * round
	return to - s.Rest, to
}

// takesPart waits until a worker of a closed loop is one of those that visit. It is false when that will not be any
// more.
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
