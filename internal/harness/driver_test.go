package harness

import (
	"strings"
	"testing"

	"hammerlock/checker"
)

// TestALateDriverIsNoExcuseForTheLock: lateness explains a lease that was not renewed, and what follows from that, but no
// grant to two holders.
func TestALateDriverIsNoExcuseForTheLock(t *testing.T) {
	fail := func(name, cause string) checker.Verdict {
		return checker.Verdict{Checker: name, Status: checker.Fail, Cause: cause, Summary: "it broke"}
	}
	cases := map[string]struct {
		verdicts []checker.Verdict
		want     checker.Status
	}{
		"late":             {[]checker.Verdict{fail("liveness", "stuck")}, checker.Inconclusive},
		"and what follows": {[]checker.Verdict{fail("exclusion", "renewal-failure"), fail("lost-updates", "exclusion"), fail("linearizable", "not-linearizable")}, checker.Inconclusive},
		"not late alone":   {[]checker.Verdict{fail("liveness", "stuck"), fail("exclusion", "double-grant")}, checker.Fail},
	}
	for name, c := range cases {
		for _, v := range excuse(c.verdicts) {
			if v.Status != c.want || (v.Cause == "") != (c.want != checker.Fail) || !strings.HasSuffix(v.Summary, "it broke") {
				t.Errorf("%s: got %+v, want %v", name, v, c.want)
			}
		}
	}
}
