package measure

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// TestASpanIsMeasuredAsARunOfItsOwn compares the meter of each phase with a separate meter for the time of the phase.
// The separate meter gets all operations of the run.
func TestASpanIsMeasuredAsARunOfItsOwn(t *testing.T) {
	ops := lonelyVisits(5000, 3)
	options := Options{Workers: 64, Keys: 3, From: 100 * ms, To: 900 * ms, Excludes: true, OpenLoop: true}
	whole := options
	whole.Spans = []Span{{"", 0, 100 * ms, 64}, {"", 100 * ms, 250 * ms, 64}, {"", 250 * ms, 251 * ms, 64},
		{"", 251 * ms, 700 * ms, 64},
		{"", 700 * ms, 900 * ms, 64}}
	observe := func(o Options) *Meter {
		m := NewMeter(o)
		for i := range ops {
			m.Observe(&ops[i])
		}
		m.NeverBegun(800 * ms)
		m.Cut(870 * ms)
		m.Finish()
		return m
	}
	run, spans := observe(whole).SoFar(history.Forever)
	want, _ := observe(options).SoFar(history.Forever)
	run.Errors, want.Errors = nil, nil
	if !reflect.DeepEqual(run, want) {
		t.Errorf("the run: got\n%+v\nwant\n%+v", run, want)
	}
	var visits int64
	for i, span := range whole.Spans {
		options.From, options.To = span.From, span.To
		want, _ := observe(options).SoFar(history.Forever)
		got := spans[i]
		want.Errors, got.Errors, want.Generator, got.Generator = nil, nil, results.Generator{}, results.Generator{}
		want.Availability = nil // it belongs to the whole run
		// The lock may be free at the end of a phase. The separate meter learns of that by a grant to a visit that
		// was due after the phase, which the meter of the phase does not get.
		if a, b := got.Fairness.IdleShare, want.Fairness.IdleShare; a != nil && math.Abs(*a-*b) < 0.002 {
			got.Fairness.IdleShare = b
		}
		if !reflect.DeepEqual(got, want) {
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			t.Errorf("from %s to %s: got\n%s\nwant\n%s", span.From, span.To, g, w)
		}
		visits += got.Visits.Done
	}
	if visits < 4000 || spans[2].Waiting.Unfinished.Count == 0 {
		t.Errorf("%d visits, %+v in the shortest span: nothing to compare", visits, spans[2].Waiting.Unfinished)
	}
}

// TestWhoRestsIsNotCompared: workers that the plan pauses at times have fewer visits, which is not unfair.
func TestWhoRestsIsNotCompared(t *testing.T) {
	s := &script{}
	for i := range 10 {
		at := time.Duration(i) * 10 * ms
		s.visit(0, at, at+ms, at+2*ms)
		if i >= 5 {
			s.visit(1, at+3*ms, at+4*ms, at+5*ms)
		}
	}
	m := s.meter(Options{Workers: 2, Keys: 1, To: 100 * ms,
		Spans: []Span{{"", 0, 50 * ms, 1}, {"", 50 * ms, 100 * ms, 2}}})
	run, spans := m.SoFar(history.Forever)
	for name, c := range map[string]struct {
		got     results.Fairness
		workers int
	}{"run": {run.Fairness, 1}, "first": {spans[0].Fairness, 1}, "second": {spans[1].Fairness, 2}} {
		if len(c.got.Workers) != c.workers || c.got.Jain != 1 {
			t.Errorf("%s: %d workers are compared, Jain %v; want %d, 1", name, len(c.got.Workers), c.got.Jain,
				c.workers)
		}
	}
}

// TestSoFarIsAsIfItEndedNow: throughput counts the time until now, and the meter continues.
func TestSoFarIsAsIfItEndedNow(t *testing.T) {
	s := &script{}
	for i := range 10 {
		at := time.Duration(i) * 10 * ms
		s.visit(0, at, at+ms, at+2*ms)
	}
	m := s.meter(Options{Workers: 1, Keys: 1, To: time.Second,
		Spans: []Span{{"", 0, 500 * ms, 1}, {"", 500 * ms, time.Second, 1}}})
	run, spans := m.SoFar(100 * ms)
	if run.Throughput != 100 || spans[0].Throughput != 100 || spans[1].Measured != 0 {
		t.Errorf("after 100 ms: %v/s, %v/s, then measured %d", run.Throughput, spans[0].Throughput, spans[1].Measured)
	}
	if run, _ = m.SoFar(2 * time.Second); run.Throughput != 10 || run.Measured != int64(time.Second) {
		t.Errorf("at the end: %v/s in %d", run.Throughput, run.Measured)
	}
}
