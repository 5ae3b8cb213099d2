package explore

import "time"

// step is something that a schedule let happen.
type step struct {
	e    *event
	act  act
	mark time.Duration // a stamp
}

// step takes down what happens next.
func (t *trace) step(e *event, a act) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	mark := t.clock.Stamp()
	if e.kind == reply && a == letGo && e.x.line != nil {
		e.x.line.heard = mark
	}
	t.steps = append(t.steps, step{e, a, mark})
}

// Message is a request or reply of a counterexample, and what became of it.
type Message struct {
	At     time.Duration `json:"at_ns"` // as in its history
	Client int32         `json:"client"`
	Reply  bool          `json:"reply,omitempty"`
	Fate   string        `json:"fate,omitempty"` // empty: it arrived
}

// The fates of messages. Any other one is said in words.
const (
	Lost    = "lost" // its sender gets no error
	Cut     = "cut"  // its connection breaks
	Refused = "error"
)

var fateOf = map[act]string{letGo: "", loses: Lost, crashes: Lost, breaks: Cut, refuses: Refused}

// messages lists what a client and a server said to each other. A deviation that holds a message up is not its fate: it
// comes again later.
func (t *trace) messages() (list []Message) {
	for _, s := range t.steps {
		fate, known := fateOf[s.act]
		if !known {
			fate = acts[s.act]
		}
		heldUp := s.act == pauses || s.act == expires || s.act == hangs
		if (s.e.kind == request || s.e.kind == reply) && !heldUp {
			list = append(list, Message{At: s.mark, Client: int32(s.e.client), Reply: s.e.kind == reply, Fate: fate})
		}
	}
	return list
}
