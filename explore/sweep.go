package explore

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/locks"
)

// Sweep examines how a lock reacts to one deviation while a parameter of the deviation grows, such as the length of a
// pause. The result is the range of values in which the lock fails. It has an upper end, because the visits end at
// some time.
type Sweep struct {
	Parameter string        `json:"parameter"`
	From      time.Duration `json:"from_ns"`
	To        time.Duration `json:"to_ns"`
}

// Envelope is the result of a sweep. A point, one value of the parameter, is broken if any schedule with this
// deviation shows a violation.
type Envelope struct {
	Sweep
	Points []Point `json:"points"`
}

type Point struct {
	Value     time.Duration `json:"value_ns"`
	Schedules int           `json:"schedules"`
	Broken    string        `json:"broken,omitempty"` // checker and cause of the violation; empty = none
	Complete  bool          `json:"complete"`
}

// parameter is a duration that a sweep can vary, such as the length of a pause.
type parameter struct {
	name string
	act  act
	set  func(*Options, time.Duration)
}

var parameters = []parameter{
	{"pause", pauses, func(o *Options, d time.Duration) { o.Pause = d }},
	{"delay", expires, func(o *Options, d time.Duration) { o.Delay = d }},
	{"hang", hangs, func(o *Options, d time.Duration) { o.Hang = d }},
	{"clock", leaps, func(o *Options, d time.Duration) { o.Leap = d }},
}

// intervals is the number of steps into which the range is divided.
const intervals = 40

// ParseSweep parses a text such as pause=0..2ttl: a parameter and a range, in times or in leases.
func ParseSweep(text string, ttl time.Duration) (*Sweep, error) {
	name, span, _ := strings.Cut(text, "=")
	first, last, ok := strings.Cut(span, "..")
	var known []string
	for _, p := range parameters {
		known = append(known, p.name)
	}
	s := &Sweep{Parameter: name}
	var errs [2]error
	s.From, errs[0] = length(first, ttl)
	s.To, errs[1] = length(last, ttl)
	if !ok || errs != [2]error{} || s.From < 0 || s.To <= s.From || !slices.Contains(known, name) {
		return nil, fmt.Errorf("a parameter (%s) and a range of times or leases, as in pause=0..2ttl",
			strings.Join(known, ", "))
	}
	return s, nil
}

// length parses a duration, or a number of leases.
func length(text string, ttl time.Duration) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if leases, ok := strings.CutSuffix(text, "ttl"); ok {
		n, err := strconv.ParseFloat(leases, 64)
		return time.Duration(n * float64(ttl)), err
	}
	return time.ParseDuration(text)
}

// Run explores a lock at each point, with one deviation in each schedule.
func (s *Sweep) Run(t *testing.T, spec locks.Spec, o Options) (Report, error) {
	t.Helper()
	r := Report{Lock: spec.Name, Options: o, Status: checker.Pass, Envelope: &Envelope{Sweep: *s}}
	begun := time.Now()
	n := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == s.Parameter })
	o.Deviations, o.Random, o.only = 1, false, parameters[n].act
	for i := range intervals + 1 {
		value := s.From + (s.To-s.From)*time.Duration(i)/intervals
		value += time.Millisecond // no multiple of another time: the order of events at the same instant is undefined
		parameters[n].set(&o, value)
		if r.Options.Budget > 0 {
			o.Budget = max(r.Options.Budget-time.Since(begun), 1)
		}
		at, err := Run(t, spec, o)
		if err != nil {
			return r, err
		}
		p := Point{Value: value, Schedules: at.Schedules(), Complete: at.Status != checker.Inconclusive}
		if at.Found != nil {
			p.Broken = at.Found.Checker + ": " + at.Found.Cause
			r.Status = checker.Fail
		} else if !p.Complete && r.Status == checker.Pass {
			r.Status, r.Reason = checker.Inconclusive, at.Reason
		}
		r.Envelope.Points = append(r.Envelope.Points, p)
	}
	r.Took = time.Since(begun)
	return r, nil
}

// String returns the points as a row: X = a schedule breaks the lock, . = no schedule does, ? = not all were run.
func (e *Envelope) String() string {
	var b strings.Builder
	for _, p := range e.Points {
		switch {
		case p.Broken != "":
			b.WriteByte('X')
		case p.Complete:
			b.WriteByte('.')
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// verdict describes in a sentence where the lock fails.
func (e *Envelope) verdict(ttl time.Duration) string {
	var windows []string
	schedules := 0
	for i, p := range e.Points {
		schedules += p.Schedules
		if p.Broken == "" || i > 0 && e.Points[i-1].Broken != "" {
			continue
		}
		last := i
		for last+1 < len(e.Points) && e.Points[last+1].Broken != "" {
			last++
		}
		windows = append(windows, fmt.Sprintf("from %.2f to %.2f leases (%s)", leases(p.Value, ttl),
			leases(e.Points[last].Value, ttl), p.Broken))
	}
	if len(windows) == 0 {
		return fmt.Sprintf("no violation with one %s of up to %.2f leases, in %s", e.Parameter, leases(e.To, ttl),
			counted(schedules, "schedule"))
	}
	return fmt.Sprintf("breaks with one %s %s, in %s", e.Parameter, strings.Join(windows, " and "),
		counted(schedules, "schedule"))
}

func leases(d, ttl time.Duration) float64 { return d.Seconds() / ttl.Seconds() }

// WriteEnvelopes writes the rows of locks that were swept in the same way, with an axis.
func WriteEnvelopes(w io.Writer, all []Report) error {
	var b strings.Builder
	e := all[0].Envelope
	fmt.Fprintf(&b, "%-24s%-20s%-20s%s\n", e.Parameter+" / lease", axis(&all[0], 0), axis(&all[0], 0.5),
		axis(&all[0], 1))
	for _, r := range all {
		fmt.Fprintf(&b, "%-24s%s\n", r.Lock, r.Envelope)
	}
	fmt.Fprintln(&b, "X some schedule with one such deviation violates something; . none does; ? not all were run")
	_, err := io.WriteString(w, b.String())
	return err
}

// axis returns the label of a place on the axis, from 0 to 1.
func axis(r *Report, at float64) string {
	e := r.Envelope
	return fmt.Sprintf("%.3g", leases(e.From, r.Options.TTL)*(1-at)+leases(e.To, r.Options.TTL)*at)
}

func WriteEnvelopesSVG(w io.Writer, all []Report) error {
	const left, cell, row, top = 150, 12, 22, 30
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		left+cell*(intervals+1)+30, top+row*len(all)+30)
	fmt.Fprintf(&b, "<title>Where one %s breaks a lock</title>\n", all[0].Envelope.Parameter)
	for i := range 5 {
		at := float64(i) / 4
		fmt.Fprintf(&b, `<text x="%g" y="20" text-anchor="middle">%s</text>`+"\n", left+cell/2+at*cell*intervals,
			axis(&all[0], at))
	}
	fmt.Fprintf(&b, `<text x="0" y="20">%s / lease</text>`+"\n", all[0].Envelope.Parameter)
	for y, r := range all {
		fmt.Fprintf(&b, `<text x="0" y="%d">%s</text>`+"\n", top+y*row+15, r.Lock)
		for x, p := range r.Envelope.Points {
			fill, height, what := "#c8d6c0", 4, "no violation"
			switch {
			case p.Broken != "":
				fill, height, what = "#a02020", row-4, p.Broken
			case !p.Complete:
				fill, height, what = "#999", row/2, "not all schedules were run"
			}
			fmt.Fprintf(&b,
				`<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%s, %v: %s</title></rect>`+"\n",
				left+x*cell, top+(y+1)*row-2-height, cell-1, height, fill, r.Lock, p.Value, what)
		}
	}
	fmt.Fprintf(&b, `<text x="0" y="%d">high: some schedule with one such deviation violates something; `+
		"low: none does</text></svg>\n", top+row*len(all)+20)
	_, err := io.WriteString(w, b.String())
	return err
}
