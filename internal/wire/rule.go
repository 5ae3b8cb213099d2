package wire

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Rule breaks something at a moment that matters: when a reply has come and is about to be passed on.
type Rule struct {
	When func(*Request) bool // is this such a reply? Called from many goroutines
	Nth  int                 // of those replies, from 1; 0 = each
	Do   Action
}

// Action is what a rule does.
type Action struct {
	effect effect
	delay  time.Duration
	call   func()
}

type effect uint8

const (
	noEffect effect = iota
	dropReply
	cut
	delay
	call
)

// DropReply loses the reply, and all that follows on that connection, which stays open: the client waits.
var DropReply = Action{effect: dropReply}

// CutConnection loses the reply and breaks the connection, on both sides.
var CutConnection = Action{effect: cut}

// Delay passes the reply on later by d, and what follows on that connection behind it.
func Delay(d time.Duration) Action { return Action{effect: delay, delay: d} }

// Call calls f before the reply is passed on, and waits for it.
func Call(f func()) Action { return Action{effect: call, call: f} }

// rules are those in force.
type rules struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*rule]
}

type rule struct {
	Rule
	met atomic.Int64
}

// Apply puts a rule in force, for open connections too, and returns what removes it.
func (p *Proxy) Apply(r Rule) (heal func(), err error) {
	if r.When == nil || r.Nth < 0 || r.Do.effect == noEffect || r.Do.effect == call && r.Do.call == nil || r.Do.delay < 0 {
		return nil, errors.New("a rule needs When, an action, and an Nth of 0 or more")
	}
	added := &rule{Rule: r}
	p.rules.change(func(list []*rule) []*rule { return append(list, added) })
	return func() {
		p.rules.change(func(list []*rule) []*rule {
			return slices.DeleteFunc(list, func(other *rule) bool { return other == added })
		})
	}, nil
}

func (s *rules) change(how func([]*rule) []*rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*rule
	if old := s.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = how(list)
	s.list.Store(&list)
}

// met are the actions of the rules that a reply meets.
func (s *rules) met(r *Request) (actions []Action) {
	list := s.list.Load()
	if list == nil {
		return nil
	}
	for _, rule := range *list {
		if !rule.When(r) {
			continue
		}
		if n := rule.met.Add(1); rule.Nth == 0 || n == int64(rule.Nth) {
			actions = append(actions, rule.Do)
		}
	}
	return actions
}
