package checker

import "hammerlock/history"

// Stated is a verdict that needs no proof from a history: on an expectation, on a gate, or on an exploration as a
// whole. Cause is empty unless it failed.
func Stated(name string, status Status, cause, summary string) Verdict {
	return Verdict{Checker: name, Status: status, Cause: cause, Summary: summary}
}

// Ended is the verdict on a lock that has ended its own run: it panicked, it does not return, or its process died.
// The story tells it, in a line or more; the evidence is the last operation before.
func Ended(name, cause string, story []string, before []history.Op) Verdict {
	v := Stated(name, Fail, cause, story[0])
	v.Violations, v.Story = 1, story
	if n := len(before); n > 0 {
		v.Evidence = before[n-1:]
	}
	return v
}
