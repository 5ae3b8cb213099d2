package compare

import (
	"fmt"
	"io"
	"math"

	"hammerlock/internal/human"
)

// probe is one measurement of a search: a value of the setting, and whether the objective held there.
type probe struct {
	At     float64    `json:"at"`
	Result GateResult `json:"result"`
}

// Search looks for the highest value of a setting, such as the load, at which an objective holds.
type Search struct {
	From, Most float64 // the first and the largest value to try
	Step       float64 // precision of the result, as a share of the value
	Whole      bool    // the setting is an integer
	Try        func(at float64) (GateResult, error)
}

// Found is the result of a Search. Holds is the highest value at which the objective held. Breaks is the next higher
// value that was tried; the objective failed there.
type Found struct {
	Objective string     `json:"objective"`
	Over      string     `json:"over"`
	Holds     *float64   `json:"holds"` // null = the objective held at no value
	Breaks    *float64   `json:"breaks"`
	Status    GateStatus `json:"status"` // pass = repeated measurements confirm both values
	Reason    string     `json:"reason"`
	Probes    []probe    `json:"probes"`

	text func(at float64) string
}

// A value is measured up to 3 times; 2 equal results confirm it.
const (
	looks    = 3
	majority = looks/2 + 1
	attempts = 4 // how often to search for two values that can be confirmed
)

type search struct {
	Search
	found Found
	err   error
}

// Run tries greater and greater values until the objective fails, and then bisects. It repeats the measurements at
// the highest value that held and at the lowest that failed. If one of them is not confirmed, the search goes on
// from there.
func (s Search) Run() (Found, error) {
	w := &search{Search: s, found: Found{text: s.Text}}
	low, high := w.bracket()
	for range attempts {
		if w.over() || low == 0 || math.IsInf(high, 1) {
			break
		}
		low, high = w.bisect(low, high)
		switch {
		case w.over():
		case !w.confirm(low, GatePass):
			low, high = w.lower(low), low
		case !w.confirm(high, GateFail):
			low, high = high, w.upper(high)
		default:
			return w.end(low, high, GatePass, "confirmed from both sides"+w.contradictions(low, high))
		}
	}
	switch {
	case w.over():
		return w.end(low, high, w.found.Status, w.found.Reason)
	case low == 0:
		return w.end(low, high, GateFail, "the objective holds at no value from "+s.Text(s.least())+" on")
	case math.IsInf(high, 1):
		return w.end(low, high, GateInconclusive, "the objective holds at every value that was tried")
	default:
		return w.end(low, high, GateUnderpowered,
			"the limit could not be confirmed: it varies from run to run; longer runs (--duration) vary less")
	}
}

// Text formats a value of the setting.
func (s *Search) Text(at float64) string {
	if s.Whole {
		return human.Count(int64(at))
	}
	return human.Number(at)
}

// contradictions says how many measurements disagree with the result; empty = none does.
func (w *search) contradictions(low, high float64) string {
	below, above := 0, 0
	for _, p := range w.found.Probes {
		switch {
		case p.At <= low && p.Result.Status == GateFail:
			below++
		case p.At >= high && p.Result.Status == GatePass:
			above++
		}
	}
	if below+above == 0 {
		return ""
	}
	return fmt.Sprintf(" by most of the runs there; of %s it failed in %d at %s or less, and held in %d at %s or more",
		human.Quantity(len(w.found.Probes), "run"), below, w.Text(low), above, w.Text(high))
}

// over reports whether the search must end, because a measurement had no usable result.
func (w *search) over() bool { return w.found.Status != "" }

// least returns the smallest value to try.
func (s *Search) least() float64 {
	if s.Whole {
		return 1
	}
	return s.From / 1024
}

// look measures at a value, and reports whether the objective holds there.
func (w *search) look(at float64) bool {
	if w.over() {
		return false
	}
	r, err := w.Try(at)
	if err != nil {
		w.err, w.found.Status, w.found.Reason = err, GateNoData, err.Error()
		return false
	}
	w.found.Probes = append(w.found.Probes, probe{at, r})
	if r.Status != GatePass && r.Status != GateFail {
		w.found.Status, w.found.Reason = r.Status, fmt.Sprintf("at %s: %s", w.Text(at), r.Summary)
	}
	return r.Status == GatePass
}

// bracket returns a value at which the objective holds, and a greater one at which it fails. If it holds at no
// value, low is 0. If it fails at no value, high is infinite.
func (w *search) bracket() (low, high float64) {
	switch {
	case w.look(w.From):
		return w.From, w.upper(w.From)
	case w.over():
		return 0, math.Inf(1)
	default:
		return w.lower(w.From), w.From
	}
}

func (w *search) upper(low float64) float64 {
	for at := low; at < w.Most && !w.over(); {
		if at = min(2*at, w.Most); !w.look(at) && !w.over() {
			return at
		}
	}
	return math.Inf(1)
}

func (w *search) lower(high float64) float64 {
	for at := high; at > w.least() && !w.over(); {
		if at = w.round(max(at/2, w.least())); w.look(at) {
			return at
		}
	}
	return 0
}

func (w *search) round(x float64) float64 {
	if w.Whole {
		return math.Floor(x)
	}
	return x
}

// bisect narrows the interval from low to high until its ends differ by at most the share Step. Each time, it tries
// the geometric mean of the ends.
func (w *search) bisect(low, high float64) (float64, float64) {
	for high/low > 1+w.Step && !(w.Whole && high-low <= 1) {
		at := w.round(math.Sqrt(low * high))
		if w.Whole {
			at = max(at, low+1)
		}
		switch {
		case w.look(at):
			low = at
		case w.over():
			return low, high
		default:
			high = at
		}
	}
	return low, high
}

// confirm repeats a measurement, whose first result was the argument want. It returns true if most results are the
// same.
func (w *search) confirm(at float64, want GateStatus) bool {
	agree, differ := 1, 0
	for agree < majority && differ < majority && !w.over() {
		if w.look(at) == (want == GatePass) {
			agree++
		} else {
			differ++
		}
	}
	return agree >= majority && !w.over()
}

func (w *search) end(low, high float64, status GateStatus, reason string) (Found, error) {
	f := w.found
	f.Status, f.Reason, f.Breaks = status, reason, finite(high)
	if low > 0 {
		f.Holds = &low
	}
	return f, w.err
}

func (f *Found) WriteText(w io.Writer) error {
	p := &human.Printer{W: w}
	p.Line("%s over %s", f.Objective, f.Over)
	p.Line("")
	for _, probe := range f.Probes {
		p.Line("%12s  %-13s %s", f.text(probe.At), string(probe.Result.Status), probe.Result.Summary)
	}
	p.Line("")
	switch {
	case f.Holds == nil && f.Breaks == nil:
		p.Fact(f.Over, "unknown: "+f.Reason)
	case f.Holds == nil:
		p.Fact(f.Over, fmt.Sprintf("breaks at %s: %s", f.text(*f.Breaks), f.Reason))
	case f.Breaks == nil:
		p.Fact(f.Over, fmt.Sprintf("holds at %s; more is unknown: %s", f.text(*f.Holds), f.Reason))
	default:
		p.Fact(f.Over, fmt.Sprintf("holds at %s, breaks at %s: %s", f.text(*f.Holds), f.text(*f.Breaks),
			f.Reason))
	}
	return p.Err
}
