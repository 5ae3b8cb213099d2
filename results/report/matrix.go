package report

import (
	"slices"

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// Beside is what a command found beside the runs that it saved.
type Beside struct {
	Explored []results.Judgement
	NotRun   []results.NotRun
}

// runs are those of the explorations, which keep none if they found nothing.
func (b *Beside) runs() (all []saved) {
	for i := range b.Explored {
		j := &b.Explored[i]
		all = append(all, saved{Run: &results.Run{Explored: true, Topology: j.Topology, Lock: j.Lock, Scenario: j.Scenario, Faults: j.Faults,
			Command: j.Command, Took: int64(j.Took), Verdicts: j.Verdicts}})
	}
	return all
}

// matrixView is runs by the properties that were judged of them, and what is to be said of those that did not pass.
type matrixView struct {
	Properties []string
	Columns    int
	Groups     []groupView // a lock each
	Failures   []failureView
	Open       []string // what is undecided, and why
	NotRun     tableView
}

type groupView struct {
	Name string
	Rows []matrixRow
}

// matrixRow is a run, or a scenario that there was no time for, which has no ID.
type matrixRow struct {
	ID, Name, Proof string
	State           state
	Cells           []matrixCell
}

type matrixCell struct {
	state
	Text string
}

// failureView is a cause of failures, told once.
type failureView struct {
	Title, Means, Remedy, Command string
	Lines                         []string
	In                            []cellView
}

var notRun = state{"none", "", "NOT RUN"}

// matrix is empty if the runs were judged by one property only, as those of bench are.
func matrix(runs []saved, names []string, not []results.NotRun) (m matrixView) {
	judged := make([]results.Judgement, len(runs))
	for i := range runs {
		judged[i] = runs[i].Judgement()
		for _, v := range judged[i].Verdicts {
			if !slices.Contains(m.Properties, v.Checker) {
				m.Properties = append(m.Properties, v.Checker)
			}
		}
	}
	if len(m.Properties) < 2 {
		return matrixView{}
	}
	m.Columns = len(m.Properties) + 3
	groups := map[string][]int{}
	for i := range judged {
		lock := judged[i].Lock
		if groups[lock] = append(groups[lock], i); len(groups[lock]) == 1 {
			m.Groups = append(m.Groups, groupView{Name: lock})
		}
	}
	for g := range m.Groups {
		m.group(&m.Groups[g], groups[m.Groups[g].Name], runs, judged)
	}
	for i := range judged {
		if status, text := judged[i].Status(); status == checker.Inconclusive {
			m.Open = append(m.Open, names[i]+": "+text)
		}
	}
	for _, x := range results.Failures(judged) {
		f := failureView{Title: results.Title(x.Verdict), Means: x.Means(), Remedy: x.Remedy, Lines: human.Names(x.Story, human.Unbroken), Command: judged[x.In[0]].Command}
		for _, i := range x.In {
			f.In = append(f.In, cellView{Text: names[i], Link: runID(i)})
		}
		m.Failures = append(m.Failures, f)
	}
	m.outside(not)
	return m
}

// group fills the rows of a lock.
func (m *matrixView) group(g *groupView, in []int, runs []saved, judged []results.Judgement) {
	var of []saved
	for _, i := range in {
		of = append(of, runs[i])
	}
	names, common := titles(of)
	if g.Name = common; common == "" {
		g.Name = of[0].Lock
	}
	for k, i := range in {
		j := &judged[i]
		status, text := j.Status()
		if status != checker.Inconclusive {
			text = j.Proof()
		}
		if len(in) > 1 && names[k] == common {
			names[k] = "no scenario"
		}
		row := matrixRow{ID: runID(i), Name: names[k], State: stateOf(status), Proof: human.Unbroken(text)}
		for _, property := range m.Properties {
			cell := matrixCell{notRun, property + ": not run"}
			if at := slices.IndexFunc(j.Verdicts, func(v checker.Verdict) bool { return v.Checker == property }); at >= 0 {
				v := &j.Verdicts[at]
				cell = matrixCell{stateOf(v.Status), results.Title(v) + "; " + results.Finding(v)}
			}
			row.Cells = append(row.Cells, cell)
		}
		g.Rows = append(g.Rows, row)
	}
}

// outside takes down what was not run: a row for what there was no time for, and the reason of each that does not apply.
func (m *matrixView) outside(not []results.NotRun) {
	m.NotRun = tableView{Head: []string{"Scenario", "Why it was not run"}, Class: "words"}
	late := groupView{Name: "No time was left for"}
	for i := range not {
		if n := &not[i]; n.Unasked {
			late.Rows = append(late.Rows, matrixRow{Name: n.Name(), State: notRun, Cells: slices.Repeat([]matrixCell{{notRun, "not run"}}, len(m.Properties)), Proof: n.Why})
		} else {
			m.NotRun.add(n.Name(), n.Why)
		}
	}
	if len(late.Rows) > 0 {
		m.Groups = append(m.Groups, late)
	}
}
