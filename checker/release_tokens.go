package checker

import (
	"fmt"
	"slices"

	"hammerlock/history"
)

// equalTokens blames a lock that gave the same token to two workers, because a comparison of tokens cannot tell them
// apart. Two cases are excused: a server that lost its data may draw a number again, and on the wire one worker may
// look like two.
func (s *releases) equalTokens() {
	c := s.c
	if c.Wire != "" {
		return
	}
	for _, holds := range c.byKey {
		same := make(map[uint64]int32, len(holds))
		for _, n := range slices.Backward(holds) {
			h := &c.holds[n]
			token := c.acquire(h).Token
			if token == 0 || h.Outcome != history.OK {
				continue
			}
			next, ok := same[token]
			same[token] = n
			if !ok {
				continue
			}
			o := &c.holds[next]
			if c.Caller(o.Worker) == c.Caller(h.Worker) || c.forgotten(h.Key, h.Call, o.Return) != nil {
				continue
			}
			s.blame(history.EqualTokens, testimony{[]history.Op{*c.acquire(h), *c.acquire(o)}, []string{granted(c, h),
				granted(c, o), fmt.Sprintf("%s and %s have the same token, so that each can release the other's hold",
					c.name(h), c.name(o))}}, nil)
		}
	}
}

// releases judges the answers to releases.
type releases struct {
	*sweeper
	blames[testimony]
}

// releaseCauses lists the causes of failed verdicts of this checker, the worst first.
var releaseCauses = []string{history.ForeignRelease, history.FalseRelease, history.DoubleRelease, history.FalseRefusal,
	history.EqualTokens}
