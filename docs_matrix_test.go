package hammerlock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/human"
	"hammerlock/internal/matrix"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// matrices are what verify matrix --json has printed, a file for each seed: make matrix.
var matrices = flag.String("matrix", "", "with -update: keep these matrices, the files separated by commas")

const matrixFile = "results/baselines/matrix.json"

// keptMatrix is what is kept of the same matrix with several seeds.
type keptMatrix struct {
	Server  string           `json:"server"`
	Cores   int              `json:"cores"`
	Seeds   []uint64         `json:"seeds"`
	LeftOut []matrix.LeftOut `json:"left_out"`
	Cells   []keptCell       `json:"cells"`
}

// keptCell is a cell with what every seed found.
type keptCell struct {
	Lock       string          `json:"lock"`
	Topology   string          `json:"topology"`
	Fault      string          `json:"fault"`
	Counter    string          `json:"counter,omitempty"`   // if it is not the usual one
	Processes  int             `json:"processes,omitempty"` // if there are several
	Want       string          `json:"want"`
	Found      []string        `json:"found"`
	Holds      int64           `json:"holds"`
	Violations int64           `json:"violations,omitempty"`
	Detected   []time.Duration `json:"detected_ns,omitempty"`
}

const passWord = "PASS"

// TestMatrix compares docs/MATRIX.md with the matrix that was kept, and that with the catalogue.
func TestMatrix(t *testing.T) {
	if *update && *matrices != "" {
		keepMatrices(t, strings.Split(*matrices, ","))
	}
	kept := readMatrix(t)
	generated(t, "docs/MATRIX.md", map[string]string{"short": kept.short(), "right": rightTable(readLines[rightRun](t, rightFile)), "matrix": kept.full()})
	for _, c := range kept.Cells {
		if _, ok := known.Find(c.Lock); !ok {
			t.Errorf("the kept matrix has a lock %s, the catalogue has not: make matrix", c.Lock)
		}
		if len(c.Found) != len(kept.Seeds) || c.Want == "must-pass" && slices.ContainsFunc(c.Found, func(s string) bool { return s != passWord }) ||
			c.Want == "must-fail" && slices.Contains(c.Found, passWord) {
			t.Errorf("not as expected: %+v", c)
		}
	}
	if len(kept.Seeds) < 2 {
		t.Errorf("kept of %d seeds, want two", len(kept.Seeds))
	}
}

func readMatrix(t *testing.T) *keptMatrix {
	t.Helper()
	text, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept keptMatrix
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	return &kept
}

// keepMatrices writes the file. Locks that were not run keep the cells that they have.
func keepMatrices(t *testing.T, files []string) {
	t.Helper()
	server, err := topologies.FindServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	kept := keptMatrix{Server: server.String(), Cores: runtime.NumCPU()}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.put(text); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if err := kept.takeOver(readMatrix(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(matrixFile, kept.text(t), 0o644); err != nil {
		t.Fatal(err)
	}
}

// put adds what verify matrix --json printed: a green matrix of the same cells with another seed.
func (m *keptMatrix) put(text []byte) error {
	var doc struct {
		Matrix matrix.Summary
		Cells  []struct {
			matrix.Cell
			Expected          struct{ Want string }
			Found             string
			Holds, Violations int64
			Detected          time.Duration `json:"detected_ns"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	first := len(m.Seeds) == 0
	switch {
	case doc.Matrix.Red > 0:
		return fmt.Errorf("%d cells are red", doc.Matrix.Red)
	case slices.Contains(m.Seeds, doc.Matrix.Seed):
		return fmt.Errorf("seed %d was there before", doc.Matrix.Seed)
	case !first && len(doc.Cells) != len(m.Cells):
		return fmt.Errorf("%d cells where there were %d before", len(doc.Cells), len(m.Cells))
	}
	for i, c := range doc.Cells {
		k := keptCell{Lock: c.Lock, Topology: c.Topology, Fault: c.Fault, Want: c.Expected.Want}
		k.unusual(c.Cell)
		if first {
			m.Cells = append(m.Cells, k)
		}
		if err := m.Cells[i].add(k, c.Found, c.Holds, c.Violations, c.Detected); err != nil {
			return err
		}
	}
	m.Seeds, m.LeftOut = append(m.Seeds, doc.Matrix.Seed), doc.Matrix.LeftOut
	return nil
}

// takeOver adds the cells of locks that only the old matrix has, in the order of the catalogue.
func (m *keptMatrix) takeOver(old *keptMatrix) error {
	before := len(m.Cells)
	for _, c := range old.Cells {
		if _, ok := known.Find(c.Lock); ok && !slices.ContainsFunc(m.Cells[:before], func(k keptCell) bool { return k.Lock == c.Lock }) {
			m.Cells = append(m.Cells, c)
		}
	}
	if len(m.Cells) == before {
		return nil
	}
	if m.Server != old.Server || m.Cores != old.Cores || !slices.Equal(m.Seeds, old.Seeds) {
		return fmt.Errorf("some locks were run with %s, %d cores and seeds %v, the others with %s, %d cores and seeds %v: run them all",
			m.Server, m.Cores, m.Seeds, old.Server, old.Cores, old.Seeds)
	}
	for _, l := range old.LeftOut {
		if !slices.ContainsFunc(m.LeftOut, func(k matrix.LeftOut) bool { return k.Why == l.Why }) {
			m.LeftOut = append(m.LeftOut, l)
		}
	}
	place := func(lock string) int {
		return slices.IndexFunc(known.Locks, func(l locks.Spec) bool { return l.Name == lock })
	}
	slices.SortStableFunc(m.Cells, func(a, b keptCell) int { return place(a.Lock) - place(b.Lock) })
	return nil
}

func (k *keptCell) unusual(c matrix.Cell) {
	if c.Counter != workload.RedisCounter.Name {
		k.Counter = c.Counter
	}
	if c.Processes > 1 {
		k.Processes = c.Processes
	}
}

func (k *keptCell) add(c keptCell, found string, holds, violations int64, detected time.Duration) error {
	if k.Lock != c.Lock || k.Topology != c.Topology || k.Fault != c.Fault || k.Counter != c.Counter || k.Processes != c.Processes {
		return fmt.Errorf("%s on %s with %s where %s on %s with %s was before", c.Lock, c.Topology, c.special(), k.Lock, k.Topology, k.special())
	}
	k.Found, k.Holds, k.Violations = append(k.Found, found), k.Holds+holds, k.Violations+violations
	if detected > 0 {
		k.Detected = append(k.Detected, detected)
	}
	return nil
}

func (m *keptMatrix) measured(lock string) bool {
	return slices.ContainsFunc(m.Cells, func(c keptCell) bool { return c.Lock == lock })
}

// unmeasured are the locks that came after the matrix was run; those that the server could not run are left out of it.
func (m *keptMatrix) unmeasured() (names []string) {
	for _, lock := range known.Locks {
		impossible := slices.ContainsFunc(m.LeftOut, func(l matrix.LeftOut) bool { return strings.Contains(l.Why, ": "+lock.Name+" needs ") })
		if !m.measured(lock.Name) && !impossible {
			names = append(names, lock.Name)
		}
	}
	return names
}

// text is the file: a line a cell, so that a difference can be read.
func (m *keptMatrix) text(t *testing.T) []byte {
	t.Helper()
	cells := m.Cells
	m.Cells = []keptCell{}
	head, err := json.MarshalIndent(m, "", "  ")
	m.Cells = cells
	var lines [][]byte
	for _, c := range cells {
		line, cellErr := json.Marshal(c)
		err = errors.Join(err, cellErr)
		lines = append(lines, append([]byte("    "), line...))
	}
	if err != nil {
		t.Fatal(err)
	}
	body := append([]byte("\"cells\": [\n"), bytes.Join(lines, []byte(",\n"))...)
	return append(bytes.Replace(head, []byte(`"cells": []`), append(body, "\n  ]"...), 1), '\n')
}

// special is what tells a cell from others of its lock and topology.
func (k *keptCell) special() string {
	s := k.Fault
	if s == faults.None {
		s = "no fault"
	}
	if k.Counter != "" {
		s += ", counter " + k.Counter
	}
	if k.Processes > 1 {
		s += fmt.Sprintf(", %d processes", k.Processes)
	}
	return s
}

// passed tells whether the cell passed with every seed.
func (k *keptCell) passed() bool {
	return !slices.ContainsFunc(k.Found, func(s string) bool { return s != passWord })
}

// causes are what the cell failed with, each once.
func (k *keptCell) causes() string {
	list := slices.Clone(k.Found)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " or ")
}

// summary says how much stands behind the tables.
func (m *keptMatrix) summary() string {
	var holds int64
	var detected []time.Duration
	for _, c := range m.Cells {
		holds += c.Holds
		if c.Want == "must-fail" {
			detected = append(detected, c.Detected...)
		}
	}
	seeds := strings.Trim(fmt.Sprint(m.Seeds), "[]")
	text := fmt.Sprintf("%d cells with each of the seeds %s, all as expected; %s holds in all; %s on %d cores.", len(m.Cells),
		strings.ReplaceAll(seeds, " ", ", "), human.Count(holds), m.Server, m.Cores)
	if len(detected) > 0 {
		slices.Sort(detected)
		text += fmt.Sprintf(" In what had to fail the first violation was complete after %s (median), %s at the latest.",
			human.Duration(detected[len(detected)/2]), human.Duration(detected[len(detected)-1]))
	}
	return strings.Join(human.Wrap(text, 118), "\n") + "\n"
}

// full is a row for all that passed of a lock on a topology, and one for each cell that did not.
func (m *keptMatrix) full() string {
	rows := "| lock | topology | fault | expected | found | holds | violations | 95 % bound |\n|---|---|---|---|---|---|---|---|\n"
	for i := 0; i < len(m.Cells); {
		c := m.Cells[i]
		names := []string{c.special()}
		for i++; c.passed() && i < len(m.Cells); i++ {
			next := &m.Cells[i]
			if !next.passed() || next.Lock != c.Lock || next.Topology != c.Topology || next.Want != c.Want {
				break
			}
			names, c.Holds = append(names, next.special()), c.Holds+next.Holds
		}
		bound := "-"
		if c.passed() && c.Holds > 0 {
			bound = fmt.Sprintf("%.1e", min(3/float64(c.Holds), 1))
		}
		rows += fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", c.Lock, c.Topology, strings.Join(names, "; "), c.Want,
			c.causes(), human.Count(c.Holds), human.Count(c.Violations), bound)
	}
	rows += "\n" + m.summary()
	for _, lock := range m.unmeasured() {
		rows += fmt.Sprintf("\n`%s`: %s\n", lock, whyUnmeasured(lock))
	}
	if len(m.LeftOut) > 0 {
		rows += "\nNot in the matrix:\n\n"
	}
	for _, l := range m.LeftOut {
		rows += fmt.Sprintf("* %s cells: %s\n", human.Count(int64(l.Cells)), l.Why)
	}
	return rows
}

// whyUnmeasured says why a lock has no cell.
func whyUnmeasured(lock string) string {
	if s, _ := known.Find(lock); len(s.Caught) == 0 && len(s.Under) > 0 {
		return "no fault alone shows it: scenario `" + s.Under[0].Scenario + "`"
	}
	return "not measured yet: make matrix"
}

// short is a row for each lock: how much it passed on a topology, and what it failed with.
func (m *keptMatrix) short() string {
	rows, line := "| lock |", "|---|"
	for _, topology := range topologies.All {
		rows += " " + topology.Name + " |"
		line += "---|"
	}
	rows += "\n" + line + "\n"
	for _, lock := range known.Locks {
		if slices.Contains(m.unmeasured(), lock.Name) {
			rows += "| `" + lock.Name + "` | " + whyUnmeasured(lock.Name) + " |" + strings.Repeat("  |", len(topologies.All)-1) + "\n"
		}
		if !m.measured(lock.Name) {
			continue
		}
		rows += "| `" + lock.Name + "` |"
		for _, topology := range topologies.All {
			rows += " " + m.verdict(lock, topology.Name) + " |"
		}
		rows += "\n"
	}
	return rows + "\n" + m.summary()
}

func (m *keptMatrix) verdict(lock locks.Spec, topology string) string {
	passed, open := 0, 0
	var with []string
	for i := range m.Cells {
		c := &m.Cells[i]
		switch {
		case c.Lock != lock.Name || c.Topology != topology:
		case c.passed():
			passed++
		case c.causes() == "inconclusive":
			open++
		case !slices.Contains(with, c.causes()):
			with = append(with, c.causes())
		}
	}
	var parts []string
	if passed > 0 {
		parts = append(parts, fmt.Sprintf("pass ×%d", passed))
	}
	if len(with) > 0 {
		word := "fails: "
		if lock.Broken != "" {
			word = "**caught**: "
		}
		parts = append(parts, word+strings.Join(with, ", "))
	}
	if open > 0 {
		parts = append(parts, fmt.Sprintf("inconclusive ×%d", open))
	}
	return strings.Join(parts, "<br>")
}

// TestMatricesAreKeptTogether puts printed matrices together, and such that must not be.
func TestMatricesAreKeptTogether(t *testing.T) {
	printed := func(seed, red int, fault, found string) []byte {
		return fmt.Appendf(nil, `{"matrix":{"seed":%d,"red":%d},"cells":[{"lock":"lease","topology":"single","fault":"none","counter":"redis",
			"processes":1,"expected":{"want":"must-pass"},"found":"PASS","holds":100},{"lock":"lease","topology":"single","fault":%q,
			"counter":"redis","processes":2,"expected":{"want":"must-fail"},"found":%q,"holds":5,"violations":2,"detected_ns":1000000}]}`,
			seed, red, fault, found)
	}
	var kept keptMatrix
	if err := errors.Join(kept.put(printed(1, 0, "flush", "service-loss")), kept.put(printed(2, 0, "flush", "overrun"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a red one": printed(3, 1, "flush", "overrun"), "the same seed": printed(2, 0, "flush", "overrun"),
		"other cells": printed(3, 0, "evict", "overrun"), "no matrix": []byte("FAIL")} {
		other := keptMatrix{Seeds: slices.Clone(kept.Seeds), Cells: slices.Clone(kept.Cells)}
		if other.put(text) == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for _, want := range []string{
		"| `lease` | single | no fault | must-pass | PASS | 200 | 0 | 1.5e-02 |\n",
		"| `lease` | single | flush, 2 processes | must-fail | overrun or service-loss | 10 | 4 | - |\n",
		"2 cells with each of the seeds 1, 2, all as expected; 210 holds",
	} {
		if !strings.Contains(kept.full(), want) {
			t.Errorf("no %q in\n%s", want, kept.full())
		}
	}
	other := keptMatrix{Seeds: []uint64{1, 2}, Cells: []keptCell{{Lock: "none", Want: "must-fail", Found: []string{"unguarded", "unguarded"}}}}
	both := keptMatrix{Seeds: []uint64{2}, Cells: []keptCell{{Lock: "lease"}}}
	if both.takeOver(&other) == nil {
		t.Error("cells of other seeds were taken over")
	}
	both = keptMatrix{Seeds: []uint64{1, 2}, Cells: []keptCell{{Lock: "lease", Holds: 7}}}
	other.Cells = append(other.Cells, keptCell{Lock: "lease"}, keptCell{Lock: "a lock that is no more"})
	if err := both.takeOver(&other); err != nil || len(both.Cells) != 2 || both.Cells[0].Holds+both.Cells[1].Holds != 7 || !both.measured("none") {
		t.Errorf("taken over: %v, %+v", err, both.Cells)
	}
	if want := "| `lease` | pass ×1<br>fails: overrun or service-loss |" + strings.Repeat("  |", len(topologies.All)-1) + "\n"; !strings.Contains(kept.short(), want) {
		t.Errorf("no %q in\n%s", want, kept.short())
	}
	var again keptMatrix
	if err := json.Unmarshal(kept.text(t), &again); err != nil || again.full() != kept.full() {
		t.Errorf("read back: %v\n%s", err, again.full())
	}
}
