package history

import (
	"cmp"
	"time"
)

// Holding is the hold of one worker, computed from its operations in the order of their returns. Measurements,
// displays and reports use it while operations arrive. Checkers use the whole history instead. The zero value means
// that the worker holds nothing.
type Holding struct {
	ID    ID // the granted Acquire; 0 = the worker holds nothing
	Key   int32
	From  time.Duration // when it was granted
	Until time.Duration // end of the lease as the holder was told; Forever if it was told no end
	Lost  time.Duration // when the holder was told of the loss; Forever if it was not

	token uint64
}

// Change is the effect of an operation on a Holding.
type Change uint8

// The changes. After a change that ends the hold, its times can still be read.
const (
	Unchanged Change = iota
	Granted
	Prolonged // by an extension, of the worker or of a watchdog, or by a re-entry
	Told      // the holder was told of the loss; its worker may go on
	GivenBack // a release was called; its outcome may be unknown or failed
	Died      // the worker died with the hold
	Left      // the visit ended without a release
)

// Believed returns the time until which the worker may rely on its hold.
func (h *Holding) Believed() time.Duration { return min(h.Until, h.Lost) }

// Observe applies an operation of the worker to its Holding, and returns what changed.
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
		// a watchdog's extension may have only the token
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
