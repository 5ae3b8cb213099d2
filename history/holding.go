package history

import (
	"cmp"
	"time"
)

// Holding is what a worker holds, as far as its operations tell in the order of their returns: the one reader of that
// for what is measured, shown and reported while operations come. Judges read the whole history, and look at each hold
// from all sides. The zero value holds nothing.
type Holding struct {
	ID    ID // of the acquire that was granted; 0 = the worker holds nothing
	Key   int32
	From  time.Duration // it was granted
	Until time.Duration // its lease ends, as far as its holder was told; Forever if it was told no end
	Lost  time.Duration // its holder was told that it is lost; Forever if it was not

	token uint64
}

// Change is what an operation did to a Holding.
type Change uint8

// The changes. After those that end a hold its times are still there.
const (
	Unchanged Change = iota
	Granted
	Prolonged // by an extension, a watchdog's too, or a re-entry
	Told      // that the hold is lost; its worker may go on
	GivenBack // or it was asked for: the outcome is that of the release
	Died      // with the hold
	Left      // the visit ended, and nothing gave the hold back
)

// Believed is until when the worker may believe in its hold.
func (h *Holding) Believed() time.Duration { return min(h.Until, h.Lost) }

// Observe takes in an operation of the worker.
func (h *Holding) Observe(op *Op) Change {
	mine := h.ID != 0 && op.Hold == h.ID
	switch op.Kind {
	case Acquire:
		switch {
		case op.Outcome != OK || op.Return == Forever:
		case op.Outermost():
			*h = Holding{ID: op.ID, Key: op.Key, From: op.Return, Until: cmp.Or(op.Until, Forever), Lost: Forever,
				token: op.Token}
			return Granted
		case mine && op.Until > h.Until:
			h.Until = op.Until
			return Prolonged
		}
	case Extend:
		// a watchdog's has only the token
		if mine || h.ID != 0 && op.Hold == 0 && (h.token == 0 || op.Token == h.token) {
			return h.extended(op)
		}
	case Lose:
		if mine {
			return h.told(op.Return)
		}
	case Release:
		if inner := op.Value > 0 && (op.Outcome == OK || op.Reason == Refused); mine && !inner {
			return h.end(GivenBack)
		}
	case Crash:
		return h.end(Died)
	case End:
		return h.end(Left)
	}
	return Unchanged
}

func (h *Holding) extended(op *Op) Change {
	switch {
	case op.Outcome == OK && op.Until != 0:
		h.Until = op.Until
		return Prolonged
	case op.Outcome == Failed && op.Reason == Lost:
		return h.told(op.Return)
	}
	return Unchanged
}

func (h *Holding) told(at time.Duration) Change {
	h.Lost = min(h.Lost, at)
	return Told
}

func (h *Holding) end(c Change) Change {
	if h.ID == 0 {
		return Unchanged
	}
	h.ID = 0
	return c
}
