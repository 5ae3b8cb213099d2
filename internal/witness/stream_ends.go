package witness

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// mostEarly is the largest number of holds in the result that ended too early, or were on too few sites.
const mostEarly = 1000

// earlyEnds lists the holds that ended on a server before their release was called: by a command, or by an expiry
// before their lease was over. Effects are read after they happen, so no hold is listed wrongly. Two kinds of tokens
// are skipped. If a token was written to the key again, it was renewed in two steps. If a token belongs to several
// holds, it does not show which of them ended.
func (s *Stream) earlyEnds(tokens map[history.ID]uint64) {
	released, holds := map[uint64]time.Duration{}, map[uint64]int{}
	for i := range s.calls {
		c := &s.calls[i]
		token := tokens[c.hold]
		if c.kind == history.Acquire {
			holds[token]++
		} else if at, known := released[token]; !known || c.call < at {
			released[token] = c.call
		}
	}
	for i := range s.calls {
		c := &s.calls[i]
		if c.kind != history.Acquire || !c.known || holds[c.token] > 1 {
			continue
		}
		called, known := released[c.token]
		for _, w := range s.writes[c.token] {
			x := history.EarlyEnd{Node: s.servers[w.server].name, Token: c.token, At: w.gone, By: w.by, Next: w.next}
			over := c.call + c.ttl
			for _, l := range s.longer[c.hold] {
				if l.answer < w.gone {
					over, x.Extended = l.call+l.ttl, !w.early
				}
			}
			if !w.early {
				x.By = history.Expiry
			}
			ended := w.gone > 0 && w.by != "" && (w.early || w.gone < over)
			if ended && (!known || w.gone < called) && w.next != c.token && !s.servers[w.server].replica {
				s.sum.Early = append(s.sum.Early, x)
			}
		}
	}
	slices.SortFunc(s.sum.Early, func(a, b history.EarlyEnd) int { return cmp.Compare(a.At, b.At) })
	s.sum.Early = s.sum.Early[:min(len(s.sum.Early), mostEarly)]
}
