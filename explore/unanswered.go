package explore

import (
	"fmt"
	"slices"

	"hammerlock/checker"
	"hammerlock/history"
)

// unanswered finds a call to the lock whose outcome stays unknown although nothing was broken in the schedule. In
// virtual time no machine is slow, so the lock's own error is all that is left. It takes the place of the verdict on
// the activity.
func (s *schedule) unanswered(all []checker.Verdict) *checker.Verdict {
	at := slices.IndexFunc(all, func(v checker.Verdict) bool { return v.Checker == "activity" })
	if at < 0 || len(s.history.Faults) > 0 {
		return nil
	}
	for _, op := range s.history.Ops {
		switch op.Kind {
		case history.Acquire, history.Extend, history.Release:
		default:
			continue
		}
		if op.Outcome == history.Unknown && op.Reason != history.Canceled && op.Reason != history.Crashed {
			v := &all[at]
			v.Status, v.Cause, v.Violations, v.Evidence = checker.Fail, history.Unanswered, 1, []history.Op{op}
			v.Summary = fmt.Sprintf("%s by client %d ended in an error (%s), so that its effect is unknown, although nothing was broken", op.Kind, op.Worker, op.Reason)
			v.Story = []string{v.Summary}
			return v
		}
	}
	return nil
}
