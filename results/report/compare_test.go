package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/results"
	"hammerlock/results/compare"
)

// trial makes a trial of two settings, of which the second is slower by a factor and costs the same.
func trial(t *testing.T, pairs int, factor float64) *compare.Trial {
	t.Helper()
	var metrics []results.Metric
	for _, name := range []string{"response.p50", "cost.round_trips"} {
		m, err := results.FindMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		metrics = append(metrics, m)
	}
	all := make([]compare.Pair, pairs)
	for i := range all {
		for arm := range all[i] {
			r := &all[i][arm]
			slow := 1 + 0.02*math.Sin(float64(3*i+arm))
			if compare.Arm(arm) == compare.ArmB {
				slow *= factor
			}
			p50, trips := int64(1e6*slow), 2.0
			r.Latency.Response = results.Percentiles{Count: 1000, P50: &p50}
			r.Cost.RoundTrips = &trips
		}
	}
	return compare.NewTrial("lock=<lease>", "lock=watch|spin", all, metrics)
}

// TestComparisonAsPageAndComment: both have all facts in words, and escape markup.
func TestComparisonAsPageAndComment(t *testing.T) {
	gate, err := compare.ParseChangeGate("response.p50<+10%")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		factor      float64
		class, sign string
		state       string
	}{
		"slower": {1.5, "worse", "✕ B is worse", "A gate fails"},
		"faster": {0.7, "better", "✓ B is better", "Gates hold"},
		"same":   {1, "plain", "~ noise", "Gates hold"},
	} {
		outcome := trial(t, 12, c.factor)
		outcome.CheckGates([]compare.ChangeGate{gate})
		v := outcome.View()
		v.Command = "bench ab 'lock=<lease>'"
		var page, comment strings.Builder
		if err := errors.Join(WriteComparison(v, &page), v.WriteMarkdown(&comment)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<h1>" + c.state + "</h1>", `class="forest ` + c.class, c.sign, `class="floor"`,
			"lock=&lt;lease&gt;", "lock=watch|spin"} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
		if n := strings.Count(page.String(), "<circle"); n != 2*2*12 {
			t.Errorf("%s: %d dots, want one for each run of each side in each row", name, n)
		}
		for _, want := range []string{compare.Mark, `| number | lock=&lt;lease> | lock=watch\|spin |`, c.sign,
			"| response.p50 |", "    bench ab 'lock=<lease>'"} {
			if !strings.Contains(comment.String(), want) {
				t.Errorf("%s: the comment lacks %q:\n%s", name, want, comment.String())
			}
		}
	}
}

// TestPlacesOfChanges: 0 % is in the middle. Twice as much and half as much have the same distance from it. No
// change is outside of the picture.
func TestPlacesOfChanges(t *testing.T) {
	if x := place(0, 1); x != forestWide/2 {
		t.Errorf("no change lies at %g", x)
	}
	if up, down := place(1, 2), place(-0.5, 2); math.Abs(up-forestWide/2-(forestWide/2-down)) > 1e-9 {
		t.Errorf("twice as much lies at %g, half as much at %g", up, down)
	}
	for _, share := range []float64{-1, -2, 1e9, math.MaxFloat64, math.Inf(1)} {
		if x := place(share, 1); !(x >= 0 && x <= forestWide) {
			t.Errorf("%g lies at %g", share, x)
		}
	}
}

// comparisonDrawn checks the page: it has no errors, nothing is cut off, and both themes have their colours.
func comparisonDrawn(t *testing.T, b tab) {
	path := filepath.Join(t.TempDir(), "comparison.html")
	var page bytes.Buffer
	if err := WriteComparison(trial(t, 12, 1.5).View(), &page); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Show(t, address(t, path))
	for theme, back := range map[string]string{"light": "rgb(246, 247, 249)", "dark": "rgb(14, 19, 25)"} {
		b.Scheme(t, theme)
		if got := b.text(t, `getComputedStyle(document.body).backgroundColor`); got != back {
			t.Errorf("the %s page is %s", theme, got)
		}
		if n := b.picture(t, "comparison-"+theme, ""); n < 10 {
			t.Errorf("the %s page has %d colours", theme, n)
		}
	}
	cut := b.text(t,
		`String([...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth).length)`)
	if cut != "0" {
		t.Errorf("%s tables are wider than the page", cut)
	}
	centerOf := func(selector string) string {
		return b.text(t, `(e => String(Math.round(e.left + e.width / 2)))(document.querySelector("`+selector+
			`").getBoundingClientRect())`)
	}
	center, middle := centerOf(".worse .center"), centerOf(".forest.worse")
	if fmt.Sprintf("%5s", center) <= fmt.Sprintf("%5s", middle) {
		t.Errorf("what takes longer lies at %s, the middle is %s", center, middle)
	}
	b.quiet(t)
}
