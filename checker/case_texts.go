package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// String names the window with its times.
func (w *window) String() string {
	s := fmt.Sprintf("%s from %s", w.name, clock(w.from))
	if w.to != history.Forever {
		s += " to " + clock(w.to)
	}
	if w.note != "" {
		s += ": " + w.note
	}
	return s
}

// clock formats a time of the run.
func clock(t time.Duration) string {
	if t == history.Forever {
		return "for ever"
	}
	return fmt.Sprintf("%.6f s", t.Seconds())
}

// who names a worker.
func who(worker int32) string {
	if worker < 0 {
		return "the suite"
	}
	return fmt.Sprintf("w%02d", worker)
}

// name identifies a hold in a text, by its token in a few digits if it has one.
func (c *Case) name(h *hold) string {
	op := c.acquire(h)
	if op.Token == 0 {
		return "hold " + op.ID.String()
	}
	return "token " + short(op.Token)
}

// short formats a token in a few digits. It uses all bits, because hashes of similar texts may differ in few.
func short(token uint64) string {
	return fmt.Sprintf("%04x", uint16(token^token>>16^token>>32^token>>48))
}

func granted(c *Case, h *hold) string {
	s := fmt.Sprintf("%s was granted %s%s of page %d at %s", who(h.Worker), c.name(h), c.mode(h), h.Key,
		clock(h.Return))
	if h.TTL > 0 && c.Claims.Expires {
		s += fmt.Sprintf(" for %s counted from %s", human.Duration(h.TTL), clock(h.Call))
	}
	return s
}

func spanned(op *history.Op) string {
	if op.Return == history.Forever {
		return fmt.Sprintf("called at %s and never answered", clock(op.Call))
	}
	return fmt.Sprintf("called at %s and answered at %s", clock(op.Call), clock(op.Return))
}
