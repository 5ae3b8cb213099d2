package report

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// TestReportTellsWhatWasNotPlanned: the page shows faults that a user injected in the same way as planned ones. It
// also shows unplanned events of servers and processes, and which verdicts were certified.
func TestReportTellsWhatWasNotPlanned(t *testing.T) {
	f, err := results.OpenFolder(t.TempDir(), "sim")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(f.Path(results.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	w, err := history.Create(file, history.Header{Name: "sim", Workers: 1, Keys: 1,
		Faults: []history.Injection{{Name: "delay", At: "@1s"}}})
	if err != nil {
		t.Fatal(err)
	}
	id := func(n int) history.ID { return history.ID(2<<40 | n) }
	err = errors.Join(
		w.Inject(history.Injection{Name: "kill-node", At: "@1.2s", ByHand: true}),
		w.Add(&history.Op{ID: 1<<40 | 1, Hold: 1<<40 | 1, Kind: history.Acquire, Outcome: history.OK, Call: 1 * ms,
			Return: 2 * ms, Until: history.Forever}),
		w.Add(&history.Op{ID: id(1), Kind: history.Fault, Worker: -1, Key: -1, Outcome: history.OK, Value: 1,
			Call: 1200 * ms, Return: 1201 * ms}),
		w.Note(id(1), "killed n2"),
		w.Add(&history.Op{ID: id(2), Kind: history.Gap, Worker: -1, Key: -1, Outcome: history.OK, Call: 1300 * ms,
			Return: 1450 * ms}),
		w.Add(&history.Op{ID: id(3), Kind: history.Incident, Worker: -1, Key: -1, Outcome: history.OK, Call: 1500 * ms,
			Return: 1900 * ms}),
		w.Note(id(3), "n1 ended unexpectedly"),
		w.Close(""), file.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := f.Commit(&results.Run{Name: "sim", Topology: "single", Lock: "lease", Interactive: true,
		Certified: "exclusion (a core of 3 operations)", Faults: []string{"delay@1s"},
		Config: results.Config{Workers: 1, Keys: 1}, Windows: []results.FaultWindow{
			{Fault: 1, From: 1200 * ms, Injected: 1201 * ms, Healing: history.Forever, To: history.Forever}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := readSaved(dir)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	err = writePage(&page, []saved{*r}, nil)
	for _, want := range []string{"INTERACTIVE: changed interactively", "by hand: kill-node", "killed n2",
		"never happened", "n1 ended unexpectedly", "Certified: exclusion (a core of 3 operations)",
		"a process paused for 150\u00a0ms"} {
		if err != nil || !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q: %v", want, err)
		}
	}
	d := document([]saved{*r}, []string{""}, &pack{})[0].Faults
	if len(d) != 1 || d[0].Name != "by hand: kill-node" || d[0].To != -1 {
		t.Errorf("the bands are %+v", d)
	}
	if len(r.others) != 2 {
		t.Errorf("what happened by itself: %+v", r.others)
	}
}

// TestABenchShowsOutagesAndRoles: bench keeps no history, but its record has what the charts need.
func TestABenchShowsOutagesAndRoles(t *testing.T) {
	f, err := results.OpenFolder(t.TempDir(), "sim")
	if err != nil {
		t.Fatal(err)
	}
	fault := int64(0)
	dir, err := f.Commit(&results.Run{Name: "sim", Topology: "sentinel", Lock: "lease",
		Faults: []string{"kill-primary@1s"},
		Config: results.Config{Workers: 1, Keys: 1}, Roles: []results.RoleChange{
			{Node: "s1", Became: results.NoticedDown, After: int64(1400 * ms), By: int64(1500 * ms), Text: "s1 knows " +
				"that a primary is down"},
			{Node: "n2", Became: results.BecamePrimary, After: int64(1700 * ms), By: int64(1800 * ms),
				Text: "n2 became primary"}},
		Availability: &results.Availability{Count: 1,
			Outages: []results.Outage{{From: int64(time.Second), To: int64(2 * time.Second), Fault: &fault,
				Recovery: int64(time.Second), Parts: []results.Part{{Name: results.Electing, Took: int64(time.Second)}},
				Failed: map[string]int64{"acquire failed unreachable": 7}}}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := readSaved(dir)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := writePage(&page, []saved{*r}, nil); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(page.String(), "\u00a0", " ")
	for _, want := range []string{"s1 knows that a primary is down", "1.00 s after kill-primary@1s", "election 1.00 s",
		"7 acquire failed unreachable"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	d := document([]saved{*r}, []string{""}, &pack{})[0]
	if len(d.Roles) != 1 || d.Roles[0].Name != "n2 became primary" || len(d.Outages) != 1 ||
		d.Outages[0].To != int64(2*time.Second) {
		t.Errorf("the charts have %+v and %+v", d.Roles, d.Outages)
	}
}
