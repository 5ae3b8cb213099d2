package report

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// pageLimit is the largest size of the page without its data, sizeLimit that of the page of the longest run.
const (
	pageLimit = 500 << 10
	sizeLimit = 5 << 20
)

const ms = time.Millisecond

// save writes the report of a saved run into its directory.
func save(dir string) error { return Write(filepath.Join(dir, File), []string{dir}, Unsaved{}) }

// longReport makes the page of an invented run.
func longReport(t testing.TB, c crowd) (*ownership, int) {
	t.Helper()
	run := &results.Run{Name: "long", Config: results.Config{Keys: 1, Workers: c.workers, Seed: 1}, Faults: []string{}}
	s, err := buildStrip(c.play, run)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := writePage(&page, []saved{{Run: run, strip: s}}, nil); err != nil {
		t.Fatal(err)
	}
	if page.Len() > sizeLimit {
		t.Errorf("the report of %d visits takes %d bytes, want at most %d", s.Visits, page.Len(), sizeLimit)
	}
	return s, page.Len()
}

// BenchmarkReport measures the time and the bytes of a report of 10^7 operations.
func BenchmarkReport(b *testing.B) {
	for b.Loop() {
		s, size := longReport(b, crowd{workers: 64, visits: 2_000_000, intrude: 40, seed: 1})
		b.ReportMetric(float64(size), "page-bytes")
		b.ReportMetric(float64(s.Kept), "visits-kept")
	}
}

// TestReportOfALongRunIsSmall: a run has so many visits and overlaps that all limits of the strip apply.
// BenchmarkReport has ten times as many visits.
func TestReportOfALongRunIsSmall(t *testing.T) {
	c := crowd{workers: 64, visits: 200_000, intrude: 8, seed: 1}
	if testing.Short() {
		c.visits, c.intrude = 60_000, 2 // as many overlaps
	}
	s, size := longReport(t, c)
	t.Logf("%d visits, %d overlaps: %d bytes, %d visits kept in %d windows", s.Visits, s.Overlaps, size, s.Kept,
		len(s.Windows))
	if s.Visits < c.visits || s.Overlaps < stripOverlaps || s.Every < 2 || s.Kept == 0 || len(s.Tiers) != 2 {
		t.Errorf("got %d visits, %d overlaps, one of %d listed, %d kept, %d tiers: the limits are not reached",
			s.Visits, s.Overlaps,
			s.Every, s.Kept, len(s.Tiers))
	}
	if got, want := traces(s), traces(wholeStrip(t, c)); got != want || got == 0 {
		t.Errorf("overlaps left traces in %d buckets, want %d", got, want)
	}
}

// wholeStrip returns the strip with every overlap listed and painted one by one.
func wholeStrip(t *testing.T, c crowd) *ownership {
	t.Helper()
	var all []overlap
	r, err := readVisits(c.play, func(o overlap) { all = append(all, o) }, func(*stripVisit) {})
	if err != nil {
		t.Fatal(err)
	}
	s := &ownership{Workers: c.workers, End: int64(r.last)}
	s.addTier(stripCoarse, 256, 2048)
	for _, o := range all {
		s.paint(overlapping, o.a, o.from, o.to)
		s.paint(overlapping, o.b, o.from, o.to)
	}
	return s
}

// traces counts the buckets of the coarsest tier with an overlap.
func traces(s *ownership) (n int) {
	for _, b := range shares(s.Tiers[0].planes[overlapping]) {
		if b > 0 {
			n++
		}
	}
	return n
}

func TestOverlapsAreFoundAsByComparingAllPairs(t *testing.T) {
	c := crowd{workers: 5, visits: 400, intrude: 3, seed: 3}
	var visits []stripVisit
	found := map[[2]time.Duration]int{}
	_, err := readVisits(c.play, func(o overlap) { found[[2]time.Duration{o.from, o.to}]++ },
		func(v *stripVisit) { visits = append(visits, *v) })
	if err != nil {
		t.Fatal(err)
	}
	want := map[[2]time.Duration]int{}
	for i := range visits {
		for k := range visits[:i] {
			a, b := &visits[i], &visits[k]
			if from, to := max(a.grant, b.grant), min(a.held(), b.held()); from < to && a.worker != b.worker {
				want[[2]time.Duration{from, to}]++
			}
		}
	}
	if len(want) < 50 || len(found) != len(want) {
		t.Fatalf("found %d overlaps, want %d, more than 50", len(found), len(want))
	}
	for o, n := range want {
		if found[o] != n {
			t.Errorf("overlap %v: found %d times, want %d", o, found[o], n)
		}
	}
}

func TestAHolderAfterItsLeaseIsLateAndNoViolation(t *testing.T) {
	id := func(w, n uint64) history.ID { return history.ID((w+1)<<40 | n) }
	ops := []history.Op{
		{ID: id(0, 1), Hold: id(0, 1), Kind: history.Acquire, Outcome: history.OK, Call: 1, Return: 2, Until: 10 * ms},
		{ID: id(1, 1), Hold: id(1, 1), Worker: 1, Kind: history.Acquire, Outcome: history.OK, Call: 2, Return: 12 * ms,
			Until: 30 * ms},
		{ID: id(0, 2), Hold: id(0, 1), Kind: history.Release, Outcome: history.Failed, Reason: history.Lost,
			Call: 15 * ms, Return: 16 * ms},
		{ID: id(1, 2), Hold: id(1, 1), Worker: 1, Kind: history.Release, Outcome: history.OK, Call: 20 * ms,
			Return: 21 * ms},
	}
	s, err := buildStrip(func(each func(*history.Op)) error {
		for i := range ops {
			each(&ops[i])
		}
		return nil
	}, &results.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.overlaps) != 1 || !s.overlaps[0].late || s.overlaps[0].from != 12*ms || s.overlaps[0].to != 15*ms ||
		s.Late != 1 {
		t.Errorf("got %+v", s.overlaps)
	}
}

func TestReportIsOneFileThatCarriesNothingIn(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x onerror="alert(2)">`
	out := t.TempDir()
	dir := crowd{workers: 8, visits: 1500, intrude: 100, seed: 2}.save(t, out, func(r *results.Run) {
		r.Lock, r.Command = evil, evil
		r.Settings[evil] = evil
	})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindSubmatch(text)
	if len(data) != 2 || len(text)-len(data[1]) > pageLimit {
		t.Errorf("the page takes %d bytes without its data, want at most %d", len(text)-len(data[1]), pageLimit)
	}
	page := string(text)
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") ||
		strings.Count(page, "<script") != 2 {
		t.Error("a name became part of the page")
	}
	for _, bad := range []string{` src="`, "@import", "<link rel=\"stylesheet\"", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, want := range []string{"default-src &#39;none&#39;", "Copyright (c) 2022 Leon Sorokin", "service-loss",
		"was killed &lt;b&gt;and"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+unfinished))
	if err != nil || len(left) > 0 {
		t.Errorf("left lying: %v %v", left, err)
	}
	if err := save(filepath.Join(out, "nothing")); err == nil {
		t.Error("a report of no run was written")
	}
}

// TestLatencyTableSplitsHandoffs: if there were several kinds of wake-up, each has a row of hand-offs.
func TestLatencyTableSplitsHandoffs(t *testing.T) {
	r := &results.Run{Waiting: results.Waiting{Woken: []results.Woken{
		{By: "poll", Tries: 3, Grants: 1, Handoff: results.Percentiles{Count: 1}},
		{By: "signal", Tries: 1, Grants: 1, Handoff: results.Percentiles{Count: 1}},
	}}}
	table := latencyTable(r)
	var names []string
	for _, row := range table.Rows {
		names = append(names, row[0].Text)
	}
	if all := strings.Join(names, "\n"); !strings.Contains(all,
		"Hand-off, woken by poll\nHand-off, woken by signal\n") {
		t.Errorf("the table has the rows\n%s", all)
	}
	if !strings.Contains(table.Note, "signal 50.0 % of the grants (1.00 tries each)") {
		t.Errorf("the note is %q", table.Note)
	}
}
