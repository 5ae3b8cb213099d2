package kept

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/human"
	"hammerlock/internal/matrix"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

const matrixFile = "results/baselines/matrix.json"

// Matrix is what is kept of the same matrix with several seeds.
type Matrix struct {
	Made
	Server  string           `json:"server"`
	Seeds   []uint64         `json:"seeds"`
	LeftOut []matrix.LeftOut `json:"left_out"`
	Cells   []cell           `json:"cells"`
}

// cell is a cell with what every seed found.
type cell struct {
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

// ReadMatrix reads the matrix that is kept, without the cells of locks that are no more.
func ReadMatrix() (*Matrix, error) {
	m := new(Matrix)
	text, err := os.ReadFile(matrixFile)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", matrixFile, err)
	}
	m.Cells = slices.DeleteFunc(m.Cells, func(c cell) bool { _, ok := known.Find(c.Lock); return !ok })
	return m, nil
}

// Keep writes the matrix in place of the one that is kept, whose cells of locks that were not run now it takes over.
func (m *Matrix) Keep() error {
	old, err := ReadMatrix()
	if err != nil {
		return err
	}
	if err := m.takeOver(old); err != nil {
		return err
	}
	text, err := m.text()
	if err != nil {
		return err
	}
	return os.WriteFile(matrixFile, text, 0o644)
}

// Put adds what verify matrix --json printed: a green matrix of the same cells with another seed.
func (m *Matrix) Put(text []byte) error {
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
		k := cell{Lock: c.Lock, Topology: c.Topology, Fault: c.Fault, Want: c.Expected.Want}
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
func (m *Matrix) takeOver(old *Matrix) error {
	before := len(m.Cells)
	for _, c := range old.Cells {
		if _, ok := known.Find(c.Lock); ok && !slices.ContainsFunc(m.Cells[:before], func(k cell) bool { return k.Lock == c.Lock }) {
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
	slices.SortStableFunc(m.Cells, func(a, b cell) int { return place(a.Lock) - place(b.Lock) })
	return nil
}

func (k *cell) unusual(c matrix.Cell) {
	if c.Counter != workload.RedisCounter.Name {
		k.Counter = c.Counter
	}
	if c.Processes > 1 {
		k.Processes = c.Processes
	}
}

func (k *cell) add(c cell, found string, holds, violations int64, detected time.Duration) error {
	if k.Lock != c.Lock || k.Topology != c.Topology || k.Fault != c.Fault || k.Counter != c.Counter || k.Processes != c.Processes {
		return fmt.Errorf("%s on %s with %s where %s on %s with %s was before", c.Lock, c.Topology, c.special(), k.Lock, k.Topology, k.special())
	}
	k.Found, k.Holds, k.Violations = append(k.Found, found), k.Holds+holds, k.Violations+violations
	if detected > 0 {
		k.Detected = append(k.Detected, detected)
	}
	return nil
}

func (m *Matrix) measured(lock string) bool {
	return slices.ContainsFunc(m.Cells, func(c cell) bool { return c.Lock == lock })
}

// unmeasured are the locks that came after the matrix was run; those that the server could not run are left out of it.
func (m *Matrix) unmeasured() (names []string) {
	for _, lock := range known.Locks {
		impossible := slices.ContainsFunc(m.LeftOut, func(l matrix.LeftOut) bool { return strings.Contains(l.Why, ": "+lock.Name+" needs ") })
		if !m.measured(lock.Name) && !impossible {
			names = append(names, lock.Name)
		}
	}
	return names
}

// text is the file: a line a cell, so that a difference can be read.
func (m *Matrix) text() ([]byte, error) {
	cells := m.Cells
	m.Cells = []cell{}
	head, err := json.MarshalIndent(m, "", "  ")
	m.Cells = cells
	var lines [][]byte
	for _, c := range cells {
		line, cellErr := json.Marshal(c)
		err = errors.Join(err, cellErr)
		lines = append(lines, append([]byte("    "), line...))
	}
	if err != nil {
		return nil, err
	}
	body := append([]byte("\"cells\": [\n"), bytes.Join(lines, []byte(",\n"))...)
	return append(bytes.Replace(head, []byte(`"cells": []`), append(body, "\n  ]"...), 1), '\n'), nil
}

// special is what tells a cell from others of its lock and topology.
func (k *cell) special() string {
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
func (k *cell) passed() bool {
	return !slices.ContainsFunc(k.Found, func(s string) bool { return s != passWord })
}

// causes are what the cell failed with, each once.
func (k *cell) causes() string {
	list := slices.Clone(k.Found)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " or ")
}

// summary says how much stands behind the tables.
func (m *Matrix) summary() string {
	var holds int64
	var detected []time.Duration
	for _, c := range m.Cells {
		holds += c.Holds
		if c.Want == "must-fail" {
			detected = append(detected, c.Detected...)
		}
	}
	seeds := strings.Trim(fmt.Sprint(m.Seeds), "[]")
	text := fmt.Sprintf("%s %d cells with each of the seeds %s, all as expected; %s holds in all; %s.", strings.TrimSpace(Line(m.Made)),
		len(m.Cells), strings.ReplaceAll(seeds, " ", ", "), human.Count(holds), m.Server)
	if len(detected) > 0 {
		slices.Sort(detected)
		text += fmt.Sprintf(" In what had to fail the first violation was complete after %s (median), %s at the latest.",
			human.Duration(detected[len(detected)/2]), human.Duration(detected[len(detected)-1]))
	}
	return strings.Join(human.Wrap(text, 118), "\n") + "\n"
}

// full is a row for all that passed of a lock on a topology, and one for each cell that did not.
func (m *Matrix) full() string {
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
func (m *Matrix) short() string {
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

func (m *Matrix) verdict(lock locks.Spec, topology string) string {
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
