package checker

import (
	"testing"

	"hammerlock/history"
)

func TestWhatIsNotClaimedIsNotJudged(t *testing.T) {
	s := newBuilder()
	s.h.Claims = history.Claims{Excludes: true}
	c := s.prepared()
	verdicts, err := Judge(c)
	if err != nil || len(verdicts) != len(All) {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	for i, k := range All {
		claimed := k.Applies == nil || k.Applies(&c.Header)
		if v := verdicts[i]; v.Checker != k.Name || (v.Status == NotJudged) == claimed {
			t.Errorf("%s: %s %s, claimed: %v", k.Name, v.Checker, v.Status, claimed)
		}
	}
}
