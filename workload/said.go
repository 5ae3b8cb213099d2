package workload

import (
	"errors"
	"strings"

	"hammerlock/history"
	"hammerlock/locks"
)

// mostSaid is the most bytes of an error's text that are kept.
const mostSaid = 240

// answered returns what an operation's error leaves certain. It keeps the text of the first error of each kind, to
// explain a run in which everything fails.
func (w *worker) answered(kind history.Kind, err error) (history.Outcome, history.Reason) {
	outcome, reason := locks.Classify(err)
	if kind == history.Extend && errors.Is(err, errors.ErrUnsupported) {
		outcome, reason = history.Failed, history.Other // the lock cannot extend, and has changed nothing
	}
	switch reason {
	case history.None, history.Busy, history.Lost, history.Fenced, history.Crashed, history.Canceled:
	default:
		if reason == history.Quorum && locks.Silent(err) == 0 {
			break // refused, as with Busy
		}
		text := err.Error()
		for _, secret := range w.group.Secrets {
			text = strings.ReplaceAll(text, secret, "***")
		}
		w.said = Note(w.said, kind.String()+" "+outcome.String()+" "+reason.String(), text)
	}
	return outcome, reason
}

// Note keeps the text of an error under a key, unless the key has one.
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
