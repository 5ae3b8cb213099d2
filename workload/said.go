package workload

import (
	"errors"
	"strings"

	"hammerlock/history"
	"hammerlock/locks"
)

// mostSaid is how many bytes are kept of what an error says.
const mostSaid = 240

// answered is what the answer to an operation leaves certain. The text of the first error of a kind is kept, to explain
// a run in which nothing goes well.
func (w *worker) answered(kind history.Kind, err error) (history.Outcome, history.Reason) {
	outcome, reason := locks.Classify(err)
	if kind == history.Extend && errors.Is(err, errors.ErrUnsupported) {
		outcome, reason = history.Failed, history.Other // the lock cannot extend, and has done nothing
	}
	switch reason {
	case history.None, history.Busy, history.Lost, history.Fenced, history.Crashed, history.Canceled:
	default:
		if reason == history.Quorum && locks.Silent(err) == 0 {
			break // refused, as by Busy
		}
		text := err.Error()
		for _, secret := range w.group.Secrets {
			text = strings.ReplaceAll(text, secret, "***")
		}
		w.said = Note(w.said, kind.String()+" "+outcome.String()+" "+reason.String(), text)
	}
	return outcome, reason
}

// Note keeps what was said of something, unless that is known.
func Note(said map[string]string, what, text string) map[string]string {
	if _, known := said[what]; known {
		return said
	}
	if said == nil {
		said = map[string]string{}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostSaid {
		text = strings.ToValidUTF8(text[:mostSaid], "") + ".."
	}
	said[what] = text
	return said
}
