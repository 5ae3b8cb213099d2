package explore

import "time"

// step is an event that happened in a schedule.
type step struct {
	e    *event
	act  act
	mark time.Duration // time in the history
}

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

// Message is a request or reply in a counterexample, with its fate.
type Message struct {
	At     time.Duration `json:"at_ns"` // time in the history
	Client int32         `json:"client"`
	Reply  bool          `json:"reply,omitempty"`
	Fate   string        `json:"fate,omitempty"` // empty = it arrived
}

// Fates of messages. Other fates are described in words.
const (
	Lost    = "lost" // it never arrives, and its sender gets no error
	Cut     = "cut"  // its connection breaks
	Refused = "error"
)

var fateOf = map[act]string{letGo: "", loses: Lost, crashes: Lost, breaks: Cut, refuses: Refused}

// messages lists the messages between clients and servers. A message that a deviation only delays is listed when it
// is delivered, not when it is delayed.
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
