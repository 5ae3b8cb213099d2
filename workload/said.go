package workload

import (
	"errors"
	"strings"

	"hammerlock/history"
	"hammerlock/locks"
)

// mostSaid is the largest number of bytes that are kept of an error text.
const mostSaid = 240

// answered classifies the result of an operation as OK, failed or unknown. It keeps the first error text of each
// kind, to explain a run in which everything fails.
func (w *worker) answered(kind history.Kind, err error) (history.Outcome, history.Reason) {
	outcome, reason := locks.Classify(err)
	if kind == history.Extend && errors.Is(err, errors.ErrUnsupported) {
		outcome, reason = history.Failed, history.Other // the lock cannot extend a lease, so nothing was changed
	}
	switch reason {
	case history.None, history.Busy, history.Lost, history.Fenced, history.Crashed, history.Canceled:
	default:
		if reason == history.Quorum && locks.Silent(err) == 0 {
			break // the servers refused, and that needs no text
		}
		text := w.group.Secrets.Hide(err.Error())
		w.said = Note(w.said, kind.String()+" "+outcome.String()+" "+reason.String(), text)
	}
	return outcome, reason
}

// Note stores the text of an error in the map said, unless the map has a text for this kind of error already. It
// makes the map if said is nil.
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
