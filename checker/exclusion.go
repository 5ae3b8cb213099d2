package checker

import (
	"fmt"
	"maps"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Exclusion judges whether two workers held the lock at the same time.
var Exclusion = Checker{
	Name: "exclusion",
	Doc: "no two holders at a time, but readers, nor more permits than there are: none believes in the lock, " +
		"nor uses it, while it is another's",
	Causes:  severity,
	Applies: func(h *history.Header) bool { return h.Claims.Excludes },
	Check:   checkExclusion,
}

func checkExclusion(c *Case) Verdict {
	f := c.examine()
	v := Verdict{Misses: maps.Clone(f.misses), Doubled: f.doubled}
	short := int64(0) // contended holds that are too short to prove anything, given the differences of clocks
	for i := range c.holds {
		switch h := &c.holds[i]; {
		case h.Outcome != history.OK:
		case h.Exposed:
			v.Exposed++
		case h.Contended:
			short++
		}
	}
	if short > 0 {
		v.Misses["too short"] = short
	}
	worst := f.into(&v, f.gravest(c))
	switch {
	case v.Status == Fail:
		tell(c, &v, worst)
	case f.excused > 0:
		v.Summary = f.excuseText("overlaps")
	case f.misses["possible"] > 0:
		v.Summary = fmt.Sprintf("%s overlaps are shorter than the %s by which the processes' clocks may differ",
			human.Count(f.misses["possible"]), human.Duration(c.differ()))
	case v.Exposed+short == 0:
		v.Summary = "no hold was contended"
	case short > 0 && v.Exposed < enoughHandOffs:
		v.Summary = fmt.Sprintf("%s of %s contended holds were too short to prove anything: "+
			"the processes' clocks may differ by %s",
			human.Count(short), human.Count(v.Exposed+short), human.Duration(c.differ()))
	default:
		v.Status = Pass
		v.Summary = none("violations", v.Exposed, "contended holds")
		if short > 0 {
			v.Summary += fmt.Sprintf("; %s were too short to prove anything", human.Count(short))
		}
	}
	if c.exchanged > 0 && v.Status != Fail {
		v.Summary += fmt.Sprintf("; loads show that clocks differ by at most %s, exchanges %s",
			human.Duration(c.differ()), human.Duration(c.exchanged))
	}
	return v
}

// none returns a sentence for a verdict without findings. An example is "0 violations in 300 contended holds: at most
// 1 in 100, with 95 % confidence".
func none(what string, n int64, of string) string {
	return fmt.Sprintf("0 %s in %s %s: %s", what, human.Count(n), of, atMost(n))
}
