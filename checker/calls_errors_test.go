package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// answers adds n grants with their releases, 40 ms apart; each call takes the given time.
func answers(s *script, n int, took time.Duration) {
	for i := range n {
		at := time.Duration(40 * i)
		s.release(s.acquire(1, at, at+took, 300), at+20, at+20+took)
	}
}

// wentWrong makes an operation one that ended in an error.
func wentWrong(op *history.Op, reason history.Reason) {
	op.Outcome, op.Reason = history.Unknown, reason
}

// brokenReleases are grants whose releases end in an error after the given time.
func brokenReleases(s *script, took time.Duration, reason history.Reason) {
	for i := range 8 {
		at := time.Duration(40 * i)
		wentWrong(s.release(s.acquire(int32(i), at, at+1, 300), at+20, at+20+took), reason)
	}
}

// brokenAcquires are tries that end in an error after the given time.
func brokenAcquires(s *script, from, took time.Duration, reason history.Reason) {
	for i := range 8 {
		at := from + time.Duration(40*i)
		wentWrong(s.busy(1, at, at+took), reason)
	}
}

var errorCases = map[string]struct {
	write func(s *script)
	want  Status
}{
	"each release": {func(s *script) { brokenReleases(s, 1, history.Other) }, Fail},
	"one of many": {func(s *script) {
		answers(s, 8, 1)
		wentWrong(s.release(s.acquire(2, 400, 401, 300), 410, 411), history.Other)
	}, Fail},
	"each acquire": {func(s *script) { brokenAcquires(s, 0, 1, history.Other) }, Fail},
	"each acquire, of a slow program": {func(s *script) {
		brokenAcquires(s, 0, 5, history.Other)
		s.Measured = &history.Measured{Driver: &history.Driver{Median: 5 * ms}}
	}, Fail},
	"the server refuses the command": {func(s *script) {
		answers(s, 8, 1)
		op := s.release(s.acquire(2, 400, 401, 300), 410, 411)
		op.Outcome, op.Reason = history.Failed, history.Refused
	}, Fail},
	"a little patience": {func(s *script) { answers(s, 16, 1); brokenAcquires(s, 700, 4, history.Other) }, Pass},
	"a little patience, and a late machine": {func(s *script) { brokenAcquires(s, 0, 4, history.Other) },
		Inconclusive},
	"no answer": {func(s *script) { brokenAcquires(s, 0, 1, history.Timeout) }, Inconclusive},
	"something was broken before": {func(s *script) {
		s.fault(serverHangs, 1, 2)
		answers(s, 2, 1)
		wentWrong(s.release(s.acquire(2, 400, 401, 300), 410, 411), history.Other)
	}, Pass},
	"a worker was held before": {func(s *script) {
		answers(s, 2, 1)
		s.fault(workerLate, 90, 95)
		wentWrong(s.release(s.acquire(2, 400, 401, 300), 410, 411), history.Other)
	}, Pass},
	"a call was called off before": {func(s *script) {
		answers(s, 2, 1)
		wentWrong(s.busy(1, 100, 101), history.Canceled)
		wentWrong(s.release(s.acquire(2, 400, 401, 300), 410, 411), history.Other)
	}, Pass},
	"the process was paused": {func(s *script) {
		answers(s, 2, 1)
		s.gap(0, 300, 380)
		wentWrong(s.release(s.acquire(2, 400, 401, 300), 410, 411), history.Other)
	}, Pass},
	"the lease was over": {func(s *script) {
		answers(s, 2, 1)
		wentWrong(s.release(s.acquire(2, 400, 401, 300), 690, 691), history.Other)
	}, Pass},
	"it may never have been held": {func(s *script) {
		answers(s, 8, 1)
		id := s.acquire(2, 400, 404, 300)
		wentWrong(s.last(), history.Other)
		wentWrong(s.release(id, 410, 411), history.Other)
	}, Pass},
	"busy, or something else": {func(s *script) { answers(s, 2, 1); brokenAcquires(s, 200, 1, history.Busy) }, Pass},
	"an extension that is unsupported": {func(s *script) {
		op := s.extend(s.acquire(2, 400, 401, 300), 410, 411, 300)
		op.Outcome, op.Reason = history.Failed, history.Other
	}, Pass},
	"servers of others": {func(s *script) {
		s.ServerErrors = true
		answers(s, 9, 1)
		brokenReleases(s, 1, history.Other)
	}, Pass},
	"servers of others, and most calls": {func(s *script) {
		s.ServerErrors = true
		brokenAcquires(s, 0, 1, history.Other)
	}, Inconclusive},
}

// TestAnErrorWhileNothingIsBroken: an error is blamed on the lock, unless something was broken before, the machine may
// have been late, or the call had nothing to act on.
func TestAnErrorWhileNothingIsBroken(t *testing.T) {
	for name, tt := range errorCases {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			tt.write(s)
			v := judgeCalls(s.prepare(t))
			if v.Status != tt.want || (v.Cause == history.Unanswered) != (tt.want == Fail) {
				t.Errorf("got %v %s: %s", v.Status, v.Cause, v.Summary)
			}
		})
	}
}

// TestTheTextOfAnErrorIsShown: every verdict shows the text of the errors, and their number.
func TestTheTextOfAnErrorIsShown(t *testing.T) {
	for reason, want := range map[history.Reason]string{
		history.Other: "unanswered: 8 of 8 acquires ended in an error while nothing was or had been " +
			"broken: no such argument",
		history.Timeout: "most calls ended in errors while nothing was or had been broken, 8 of 8: " +
			"acquire unknown timeout: too late",
	} {
		s := newScript()
		brokenAcquires(s, 0, 1, reason)
		s.Measured = &history.Measured{Said: map[string]string{"acquire unknown other": "no such argument"}}
		if reason == history.Timeout {
			s.Measured.Said = map[string]string{"acquire unknown timeout": "too late"}
		}
		v := judgeCalls(s.prepare(t))
		if !strings.Contains(v.Summary, want) || v.Misses[history.EndedInErrors] != 8 {
			t.Errorf("got %q, %v, want %q", v.Summary, v.Misses, want)
		}
	}
}
