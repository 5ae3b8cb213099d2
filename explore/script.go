package explore

import (
	"strconv"
	"time"
)

// step is something that a schedule let happen, as it is repeated on real servers.
type step struct {
	e    *event
	act  act
	at   time.Duration // since the beginning
	mark time.Duration // a stamp
	wait time.Duration // of expires: for how long no message moves
	keys int           // of a request: how many keys its server has
}

// step takes down what happens next.
func (t *trace) step(s *schedule, e *event, a act) {
	if t == nil {
		return
	}
	st := step{e: e, act: a, at: t.clock.Now(), mark: t.clock.Stamp()}
	if e.kind == request {
		st.keys = len(s.servers[e.site].Keys())
	}
	if a == expires {
		st.wait = s.slowness()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, st)
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

// names are the tokens and times of one run in the words of another.
type names map[string]string

// same tells whether a request is that of the script: but for tokens, which are drawn, and numbers, which may be times.
func (n names) same(script, here []string) bool {
	if len(script) != len(here) {
		return false
	}
	for i, word := range script {
		if word != here[i] && !(drawn(word) && drawn(here[i])) && !(number(word) && number(here[i])) {
			return false
		}
	}
	return true
}

// learn notes what the words of a request are called here.
func (n names) learn(script, here []string) {
	for i, word := range script {
		if word != here[i] {
			n[word] = here[i]
		}
	}
}

// answers tells whether an answer is that of the script. What is left of a lease may be a bit less or more.
func (n names) answers(script, here []string, lease time.Duration) bool {
	if len(script) != len(here) {
		return false
	}
	for i, word := range script {
		if word != here[i] && n[word] != here[i] && !near(word, here[i], lease) {
			return false
		}
	}
	return true
}

// near tells whether two numbers are what is left of a lease, at about the same time of it, or two readings of clocks.
func near(a, b string, lease time.Duration) bool {
	const clock, least = 1e9, 20
	x, failed := strconv.ParseInt(a, 10, 64)
	y, err := strconv.ParseInt(b, 10, 64)
	ms := lease.Milliseconds()
	return failed == nil && err == nil && min(x, y) >= least &&
		(min(x, y) > clock || max(x, y) <= ms && max(x-y, y-x) <= ms/2)
}

// drawn tells whether a word may be a token.
func drawn(word string) bool { return len(word) >= 8 && !number(word) }

func number(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}
