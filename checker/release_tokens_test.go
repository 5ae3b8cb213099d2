package checker

import (
	"testing"

	"hammerlock/history"
)

// TestEqualTokens: two holds of a page by different workers have different tokens, unless a server has lost its keys.
func TestEqualTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*script)
		want  string
	}{
		"two workers, one after the other": {func(*script) {}, history.EqualTokens},
		"of two pages":                     {func(s *script) { s.last().Key = 1 }, ""},
		"a token of its own":               {func(s *script) { s.last().Token = 8 }, ""},
		"not told":                         {func(s *script) { s.last().Token, s.Ops[0].Token = 0, 0 }, ""},
		"the same worker":                  {func(s *script) { s.last().Worker = 1 }, ""},
		"on the wire":                      {func(s *script) { s.Wire = "x" }, ""},
		"a server was flushed": {func(s *script) {
			s.fault(history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys}, 12, 13)
		}, ""},
	} {
		s := newScript()
		a := s.acquire(1, 0, 1, 300)
		s.last().Token = 7
		s.release(a, 10, 11)
		b := s.acquire(2, 20, 21, 300)
		s.Ops[2].Token = 7
		s.Ops = s.Ops[:3]
		if tt.write(s); name != "of two pages" && name != "the same worker" {
			s.release(b, 30, 31)
		}
		if v := release.Check(s.prepare(t)); v.Cause != tt.want {
			t.Errorf("%s: %q (%s), want %q", name, v.Cause, v.Summary, tt.want)
		}
	}
}
