// Package story turns a verdict into the shortest sequence of lock calls that shows it, and writes the calls as a test
// in the language of the lock's library. The package judges nothing: the test does.
package story

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/history"
)

// Story has the calls of all clients in order, and says what happens to their messages.
type Story struct {
	Lock, Checker, Cause, Summary, Command string
	Told                                   []string // the evidence in words, line by line
	Lease, Linger                          time.Duration
	Owned                                  bool // a release says whether the client still had the lock
	Guessed                                bool // it is not recorded which message of a call was late or lost
	Steps                                  []Step
}

// Step starts a call, or lets a call go on whose message was held.
type Step struct {
	At  time.Duration // since the first step
	Who string
	Do  string // acquire, extend, release or go on
	// Fault is what happens to a message of the call. Messages are counted since the call began or went on. A "late
	// reply 2" is held until the call goes on. A "cut request 1" breaks the connection. An "error request 1" is
	// answered with an error by the server.
	Fault string
}

const (
	goOn = "go on"
	must = "must" // a value of Fault: this acquire must be granted, because all holds are over
	late = "late"
)

// leastLease is the shortest lease of a story. Delays of a busy machine are small beside it.
const leastLease = 2 * time.Second

// slow is the shortest latency with which a call counts as disturbed.
const slow = 10 * time.Millisecond

var dos = map[history.Kind]string{history.Acquire: "acquire", history.Extend: "extend", history.Release: "release"}

// Of makes the story of a verdict. An exploration (found) has recorded which message was late or lost. Without that
// record, Of guesses. In a slow call during which another client called, the first request was late. In a call without
// an answer, the first reply was lost.
func Of(h *history.History, v *checker.Verdict, found *explore.Found) (*Story, error) {
	if h.Sites > 1 {
		return nil, fmt.Errorf("the story happens on %d servers; a test has one: run it on topology single, "+
			"or explore it with --sites 1", h.Sites)
	}
	ops := calls(h, v, found != nil)
	if len(ops) == 0 {
		return nil, fmt.Errorf("%s: %s: its evidence names no calls of the lock", v.Checker, v.Cause)
	}
	s := &Story{Lock: h.Lock, Checker: v.Checker, Cause: v.Cause, Summary: v.Summary, Command: h.Command, Told: v.Story,
		Linger: h.Bounds.Linger, Owned: h.Claims.Owned, Guessed: found == nil}
	var messages []explore.Message
	if found != nil {
		s.Told, messages = found.Trace, found.Messages
	}
	var end time.Duration // of all leases
	for i := range ops {
		op := &ops[i]
		steps, err := stepsOf(op, ops, messages)
		if err != nil {
			return nil, err
		}
		for _, step := range steps {
			step.Who = client(op.Worker)
			s.Steps = append(s.Steps, step)
		}
		s.Lease = max(s.Lease, op.TTL)
		end = max(end, op.Latest()+op.TTL)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	last := Step{At: s.Steps[len(s.Steps)-1].At, Who: client(int32(h.Workers)), Do: dos[history.Acquire]}
	if v.Checker == history.Liveness {
		last.At, last.Fault = end+s.Lease/2, must
	}
	s.Steps = append(s.Steps, last)
	s.stretch()
	return s, nil
}

// client is a worker's name in a story, as in traces.
func client(worker int32) string { return fmt.Sprintf("w%02d", worker) }

// calls lists the calls of the story in order, without refused acquires. If all is true, it takes all calls of the
// history, which is an exploration's; otherwise only those of the holds in the evidence.
func calls(h *history.History, v *checker.Verdict, all bool) (ops []history.Op) {
	end := v.Proved()
	holds := map[history.ID]bool{}
	for _, op := range v.Evidence {
		holds[op.Hold] = op.Hold != 0
		if op.Kind == history.Acquire {
			holds[op.ID] = true
		}
	}
	for _, op := range h.Ops {
		ours := op.Worker >= 0 && dos[op.Kind] != "" && (op.Call <= end || v.Checker == history.Liveness)
		refused := op.Kind == history.Acquire && op.Outcome == history.Failed
		if ours && !refused && (all || holds[op.Hold] || op.Kind == history.Acquire && holds[op.ID]) {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
	return ops
}

// stepsOf returns the steps of a call: the call itself, and each time it goes on.
func stepsOf(op *history.Op, ops []history.Op, messages []explore.Message) ([]Step, error) {
	steps := []Step{{At: op.Call, Do: dos[op.Kind]}}
	if messages == nil {
		switch {
		case op.Outcome == history.Unknown:
			steps[0].Fault = "cut reply 1"
		case op.Latency() >= slow && between(ops, op, op.Call, op.Return):
			steps[0].Fault = late + " request 1"
			steps = append(steps, Step{At: op.Return, Do: goOn})
		}
		return steps, nil
	}
	before, counts := op.Call, [2]int{}
	for _, m := range messages {
		if m.Client != op.Worker || m.At < op.Call || m.At > op.Return {
			continue
		}
		way, n := "request", 0
		if m.Reply {
			way, n = "reply", 1
		}
		counts[n]++
		fault := fmt.Sprintf("%s %s %d", cmp.Or(fates[m.Fate], late), way, counts[n])
		switch held := m.At-before > time.Millisecond || between(ops, op, before, m.At); {
		case m.Fate != "" && fates[m.Fate] == "":
			return nil, fmt.Errorf("a test cannot do it: a %s %s", way, m.Fate)
		case m.Fate != "" && held:
			return nil, errors.New("a test cannot hold a message and then lose it")
		case m.Fate != "":
			steps[len(steps)-1].Fault = fault
		case held:
			steps[len(steps)-1].Fault = fault
			steps, counts = append(steps, Step{At: m.At, Do: goOn}), [2]int{}
		}
		before = m.At
	}
	return steps, nil
}

// fates translates what an exploration did to a message into the fault of a test. A lost message breaks its
// connection, so that its client need not wait for a timeout.
var fates = map[string]string{explore.Lost: "cut", explore.Cut: "cut", explore.Refused: "error"}

// between reports whether another client begins a call between two times.
func between(ops []history.Op, than *history.Op, from, to time.Duration) bool {
	return slices.ContainsFunc(ops, func(o history.Op) bool {
		return o.Worker != than.Worker && o.Call > from && o.Call < to
	})
}

// hitting returns a copy of the story. A fault of the first message of a call becomes a fault of the message with the
// given number.
func (s *Story) hitting(message int) *Story {
	other := *s
	other.Steps = slices.Clone(s.Steps)
	for i := range other.Steps {
		step := &other.Steps[i]
		if fault, first := strings.CutSuffix(step.Fault, " 1"); first {
			step.Fault = fmt.Sprintf("%s %d", fault, message)
		}
	}
	return &other
}

// stretch makes all times relative to the first step, and slows the story down until the lease is at least leastLease.
func (s *Story) stretch() {
	first, k := s.Steps[0].At, time.Duration(1)
	if s.Lease > 0 && s.Lease < leastLease {
		k = (leastLease + s.Lease - 1) / s.Lease
	}
	for i := range s.Steps {
		s.Steps[i].At = (s.Steps[i].At - first) * k
	}
	s.Lease *= k
}
