package checker

import (
	"slices"
	"testing"

	"hammerlock/history"
)

// nameless is a history of a program that does not know whose stores were seen, with pages that had views before.
func nameless(h *history.History, base int64) *history.History {
	other := *h
	other.Ops = slices.Clone(h.Ops)
	for i := range other.Ops {
		op := &other.Ops[i]
		if op.Seen = 0; op.Kind == history.Final || op.Outcome == history.OK &&
			(op.Kind == history.Load || op.Kind == history.Store) {
			op.Value += base
		}
	}
	return &other
}

// TestValuesTellWhatNamesTell judges histories of right and wrong locks twice: with the names of the stores that were
// seen, and with values only.
func TestValuesTellWhatNamesTell(t *testing.T) {
	compared, lost := 0, 0
	all := 300
	if testing.Short() {
		all = 60
	}
	for seed := range uint64(all) {
		for _, flaw := range []wrong{nothingWrong, twoSteps, lateHolder} {
			h := lived(t, seed, flaw)
			cut := *h
			cut.Ops, cut.Partial = h.Ops[:seed*7919%uint64(len(h.Ops))], "it was cut"
			for _, h := range []*history.History{h, &cut} {
				named := lostBy(t, h)
				bare := lostBy(t, nameless(h, 17))
				if bare.Status == Fail && named.Status != Fail || h.Partial == "" &&
					bare.Violations > named.Violations {
					t.Fatalf("seed %d, %v: %s; with the names of stores: %s", seed, flaw, bare.Summary, named.Summary)
				}
				exact := h.Partial == "" && !slices.ContainsFunc(h.Ops, func(op history.Op) bool {
					return op.Kind == history.Store && op.Outcome == history.Unknown
				})
				if !exact || named.Causes["stale-read"] > 0 || named.Misses["unplanned"]+bare.Misses["unplanned"] > 0 {
					continue
				}
				compared++
				if bare.Violations != named.Violations || bare.Status != named.Status {
					t.Fatalf("seed %d, %v: %s %s; with the names of stores: %s %s", seed, flaw, bare.Status,
						bare.Summary, named.Status, named.Summary)
				}
				lost += min(int(named.Violations), 1)
			}
		}
	}
	if compared < all/3 || lost < all/6 {
		t.Errorf("only %d could be compared, %d with losses", compared, lost)
	}
}

func lostBy(t *testing.T, h *history.History) Verdict {
	t.Helper()
	c, err := Prepare(h)
	if err != nil {
		t.Fatal(err)
	}
	return judgeLostUpdates(c)
}
