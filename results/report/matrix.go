package report

import (
	"slices"

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// Unsaved has the results of a command that were not saved in a directory.
type Unsaved struct {
	Explored []results.Judgement
	NotRun   []results.NotRun
}

// runs makes a run of each exploration that found nothing, because such explorations are not saved.
func (b *Unsaved) runs() (all []saved) {
	for i := range b.Explored {
		j := &b.Explored[i]
		all = append(all, saved{Run: &results.Run{Explored: true, Topology: j.Topology, Lock: j.Lock,
			Scenario: j.Scenario, Faults: j.Faults,
			Command: j.Command, Took: int64(j.Took), Verdicts: j.Verdicts}})
	}
	return all
}

// matrixView is a table of verdicts: a row for each run, a column for each property. Failures and Open explain the
// verdicts other than pass.
type matrixView struct {
	Table, NotRun tableView
	Failures      []storyView
	Open          []string // scenarios without a verdict, with the reasons
}

// matrix makes the table. The command "bench" judges only one property; then the table stays empty.
func matrix(runs []saved, names []string, not []results.NotRun) (m matrixView) {
	judged, head := make([]results.Judgement, len(runs)), []string{"Scenario", "Verdict"}
	var locks []string
	for i := range runs {
		judged[i] = runs[i].Judgement()
		if !slices.Contains(locks, runs[i].Lock) {
			locks = append(locks, runs[i].Lock)
		}
		for _, v := range judged[i].Verdicts {
			if !slices.Contains(head, v.Checker) {
				head = append(head, v.Checker)
			}
		}
		if status, text := judged[i].Status(); status == checker.Inconclusive {
			m.Open = append(m.Open, names[i]+": "+text)
		}
	}
	for _, x := range results.Failures(judged) {
		f := storyView{Title: results.Title(x.Verdict), Means: x.Means(), Remedy: x.Remedy,
			Lines: human.Names(x.Story, human.Unbroken), Command: judged[x.In[0]].Command}
		for _, i := range x.In {
			f.In = append(f.In, cellView{Text: names[i], Link: runID(i)})
		}
		m.Failures = append(m.Failures, f)
	}
	if len(head) < 4 {
		return m
	}
	m.Table = tableView{Class: "matrix", Head: append(head, "What it rests on")}
	for _, lock := range locks {
		m.group(lock, runs, judged)
	}
	m.NotRun = tableView{Head: []string{"Scenario", "Why it was not run"}, Class: "words"}
	for i := range not {
		if n := &not[i]; n.Unasked {
			m.row(n.Name(), state{"plain", "", "NOT RUN"}, nil, n.Why)
		} else {
			m.NotRun.add(n.Name(), n.Why)
		}
	}
	return m
}

// group adds the rows of one lock, below a heading.
func (m *matrixView) group(lock string, runs []saved, judged []results.Judgement) {
	var of []saved
	var at []int
	for i := range runs {
		if runs[i].Lock == lock {
			of, at = append(of, runs[i]), append(at, i)
		}
	}
	names, common := titles(of)
	m.Table.add(common)
	for k, i := range at {
		if len(of) > 1 && names[k] == common {
			names[k] = "no scenario"
		}
		status, text := judged[i].Status()
		if status != checker.Inconclusive {
			text = judged[i].Proof()
		}
		m.row(names[k], stateOf(status), judged[i].Verdicts, text)[0].Link = runID(i)
	}
}

// row adds a row to the table. Properties that are missing in verdicts were not judged.
func (m *matrixView) row(name string, s state, verdicts []checker.Verdict, proof string) []cellView {
	row := m.Table.add(make([]string, len(m.Table.Head))...)
	row[0].Text, row[1].State, row[len(row)-1].Text = name, &s, human.Unbroken(proof)
	for i := range verdicts {
		s := stateOf(verdicts[i].Status)
		row[slices.Index(m.Table.Head, verdicts[i].Checker)].State = &s
	}
	return row
}
