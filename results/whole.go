package results

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/glossary"
	"hammerlock/internal/human"
)

// Whole is the common verdict on all runs of a command.
type Whole struct {
	Status checker.Status `json:"status"`
	Text   string         `json:"text"`
	Failed []string       `json:"failed,omitempty"`
	// Scenarios without a verdict, with the reasons. Whole can pass in spite of a few.
	Open   []string `json:"undecided,omitempty"`
	Extent *Extent  `json:"tried,omitempty"` // nil = no history was judged
}

// tolerated limits the share of scenarios without a verdict in a Whole that passes.
const tolerated = 0.1

// Weigh makes one verdict from all judgements; not has the scenarios that were not run. The argument cut is the
// reason why the command ended early; empty = it did not.
//
// If some scenarios have no verdict, the result can still be a pass. Such scenarios must be few, and no run may have
// ended early. In each class, some scenario must have passed with enough activity. A run without a scenario needs a
// verdict, and so does a run in which most calls ended in errors. Without classes, every scenario needs a verdict.
func Weigh(all []Judgement, not []NotRun, cut string, classes []string) (w Whole) {
	w.Extent = ExtentOf(all)
	var open []string
	n, what, partial, seen := len(all), "scenario", cut != "", map[string]bool{}
	for i := range all {
		j := &all[i]
		status, text := j.Status()
		switch status {
		case checker.Fail:
			w.Failed = append(w.Failed, j.Name()+": "+text)
		case checker.Inconclusive:
			w.Open, open = append(w.Open, j.Name()+": "+text), append(open, cmp.Or(j.Scenario, j.Name()))
			partial = partial || j.Scenario == "" || j.erred() // no other judgement can make up for this one
		}
		if j.Scenario == "" {
			what = "run"
		}
		partial = partial || j.Partial != ""
		seen[j.Class] = seen[j.Class] || j.safe()
	}
	for i := range not {
		if not[i].Unasked {
			w.Open, open = append(w.Open, not[i].Name()+": "+not[i].Why), append(open, not[i].Scenario)
			n++
		}
	}
	few := len(classes) > 0 && !partial && float64(len(open)) <= tolerated*float64(n) &&
		!slices.ContainsFunc(classes, func(c string) bool { return !seen[c] })
	undecided := fmt.Sprintf("%d of %s undecided: %s", len(open), human.Quantity(n, what), strings.Join(open, ", "))
	switch {
	case len(w.Failed) > 0:
		w.Status, w.Text = checker.Fail, fmt.Sprintf("%d of %s failed", len(w.Failed), human.Quantity(n, what))
	case cut != "":
		w.Text = "cut short: " + cut
	case len(open) > 0 && !few:
		w.Text = undecided
	case len(open) > 0:
		w.Status, w.Text = checker.Pass, undecided
	default:
		w.Status, w.Text = checker.Pass, fmt.Sprintf("%s passed", human.Quantity(n, what))
	}
	return w
}

// safe reports whether the run had enough activity, and mutual exclusion held.
func (j *Judgement) safe() bool {
	for _, name := range []string{enough, exclusion, history.Updates} {
		if !slices.ContainsFunc(j.Verdicts,
			func(v checker.Verdict) bool { return v.Checker == name && v.Status == checker.Pass }) {
			return false
		}
	}
	return true
}

// erred reports whether most lock calls ended in errors although no fault was injected.
func (j *Judgement) erred() bool { return slices.ContainsFunc(j.Verdicts, mostErred) }

func mostErred(v checker.Verdict) bool {
	return v.Checker == history.Calls && 2*v.Misses[history.EndedInErrors] > v.Exposed
}

// NeverGranted returns a text if workers requested the lock in a scenario and none got it. Then it is of no use to
// run other scenarios. Otherwise the text is empty.
func (r *Run) NeverGranted() string {
	exposed := map[string]int64{enough: -1}
	for _, v := range r.Verdicts {
		exposed[v.Checker] = v.Exposed
	}
	if exposed[enough] != 0 || exposed[history.Calls] == 0 || r.Scenario == "" {
		return ""
	}
	return "nothing was granted in " + r.Scenario + ", so that no other scenario can say more"
}

// Proof lists the facts behind a judgement: the failure, the amount of activity, the faults and the time.
func (j *Judgement) Proof() string {
	at := func(name string) *checker.Verdict {
		i := slices.IndexFunc(j.Verdicts, func(v checker.Verdict) bool { return v.Checker == name })
		if i < 0 {
			return &checker.Verdict{}
		}
		return &j.Verdicts[i]
	}
	var parts []string
	tried, overlaps, views, failure := at(enough), at(exclusion), at(history.Updates), j.failure()
	if failure != nil {
		parts = append(parts, Title(failure))
	}
	if overlaps.Checker != "" && tried.Exposed > 0 {
		parts = append(parts, human.Quantity(tried.Exposed, "hold"), human.Quantity(tried.HandOffs, "hand-off"))
	} else if failure == nil {
		_, text := j.Status()
		parts = append(parts, cmp.Or(views.Summary, text))
	}
	if failure == nil {
		parts = append(parts, j.broke()...)
	}
	if overlaps.Status == checker.Pass {
		parts = append(parts, "0 overlaps")
	}
	if j.Took > 0 && tried.Exposed > 0 {
		parts = append(parts, fmt.Sprintf("%.1f s", j.Took.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// broke returns the names of the faults, each with the number of injections.
func (j *Judgement) broke() (all []string) {
	times := map[string]int{}
	for _, f := range j.Faults {
		times[f[:len(f)-len(strings.TrimLeft(f, "abcdefghijklmnopqrstuvwxyz-"))]]++
	}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		all = append(all, fmt.Sprintf("%d %s", times[name], name))
	}
	return all
}

// Findings are the verdicts of a command on all its runs, and what it writes besides.
type Findings struct {
	Judged []Judgement
	NotRun []NotRun
	Whole  Whole
	Took   time.Duration // total time; 0 = do not show it
	Report string        // path of the report; empty = no report
	Replay string        // command that shows a run again
	Repeat string        // command that repeats everything
}

// Write writes the findings. A single run gets all details. Several runs get one row each; then each cause gets a
// paragraph with evidence and advice, and the verdict on all of them comes last.
func (f *Findings) Write(w io.Writer) error {
	p := &human.Printer{W: w}
	if len(f.Judged) == 1 && len(f.NotRun) == 0 {
		f.Judged[0].write(p)
		f.close(p)
		return p.Err
	}
	f.rows(p)
	for _, x := range Failures(f.Judged) {
		x.write(p, f.Judged)
	}
	p.Line("")
	verdict := strings.ToUpper(f.Whole.Status.String()) + "  " + f.Whole.Text
	if f.Took > 0 {
		verdict += fmt.Sprintf("; %.0f s in all", f.Took.Seconds())
	}
	p.Fact("VERDICT", verdict)
	p.Maybe("tried", f.Whole.Extent.Text())
	f.close(p)
	p.Maybe("repeat", f.Repeat)
	return p.Err
}

func (f *Findings) close(p *human.Printer) {
	p.Maybe("report", f.Report)
	p.Maybe("replay", f.Replay)
	for i := range f.Judged {
		if len(f.Judged) > 1 && len(f.Judged[i].Seen) > 0 {
			p.Line("")
			p.Line("%s", f.Judged[i].title())
		}
		for _, seen := range f.Judged[i].Seen {
			p.Fact(seen.Label, seen.Text)
		}
	}
}

// rows writes one row for each run, and one for each scenario for which no time was left. The scenarios that do not
// apply to a lock share one row.
func (f *Findings) rows(p *human.Printer) {
	title, width := (*Judgement).title, 0
	if where := f.oneLock(); where != "" {
		p.Line("%s", where)
		title = func(j *Judgement) string { return strings.TrimPrefix(j.title(), j.Topology+" "+j.Lock+" ") }
	}
	for i := range f.Judged {
		width = max(width, len(title(&f.Judged[i])))
	}
	row := func(name, verdict, text string) {
		p.Wrapped(fmt.Sprintf("%-*s %-12s ", width, name, verdict), width+14, text)
	}
	for i := range f.Judged {
		j := &f.Judged[i]
		status, text := j.Status()
		if status != checker.Inconclusive {
			text = j.Proof()
		}
		row(title(j), strings.ToUpper(status.String()), text)
	}
	outside := map[string][]*NotRun{}
	var locks []string
	for i := range f.NotRun {
		n := &f.NotRun[i]
		lock := n.Topology + " " + n.Lock
		if n.Unasked {
			lock = n.Name()
		} else if n.Ended {
			lock += " " + n.Why
		}
		if len(outside[lock]) == 0 {
			locks = append(locks, lock)
		}
		outside[lock] = append(outside[lock], n)
	}
	for _, lock := range locks {
		n := outside[lock][0]
		name, text := "", strings.Join(human.Names(outside[lock], func(n *NotRun) string { return n.Scenario }), ", ")
		if n.Ended {
			text = n.Why + ": " + text
		}
		if width >= len(lock) {
			name = lock
		}
		if len(outside[lock]) == 1 {
			name, text = title(&Judgement{Topology: n.Topology, Lock: n.Lock, Scenario: n.Scenario}), n.Why
		}
		row(name, "NOT RUN", text)
	}
}

// oneLock returns the names of the lock and its topologies, if there is only one lock and each scenario occurs once.
// The names of scenarios are then enough to identify rows. Otherwise it returns "".
func (f *Findings) oneLock() string {
	scenarios, topologies := map[string]bool{"": true}, map[string]bool{}
	for i := range f.Judged {
		j := &f.Judged[i]
		if j.Lock != f.Judged[0].Lock || scenarios[j.Scenario] {
			return ""
		}
		scenarios[j.Scenario], topologies[j.Topology] = true, true
	}
	return f.Judged[0].Lock + " on " + strings.Join(slices.Sorted(maps.Keys(topologies)), ", ")
}

func (j *Judgement) title() string {
	if j.Stretched > 1 {
		return fmt.Sprintf("%s x%d", j.Name(), j.Stretched)
	}
	return j.Name()
}

// failure returns the first failed verdict; nil = none failed. If this verdict has no evidence, it gets the story
// of another verdict with the same cause.
func (j *Judgement) failure() *checker.Verdict {
	i := slices.IndexFunc(j.Verdicts, func(v checker.Verdict) bool { return v.Status == checker.Fail })
	if i < 0 {
		return nil
	}
	v := j.Verdicts[i]
	other := slices.IndexFunc(j.Verdicts, func(o checker.Verdict) bool {
		return o.Status == checker.Fail && o.Cause == v.Cause && len(o.Evidence) > 0
	})
	if len(v.Evidence) == 0 && other >= 0 {
		v.Story = slices.Concat(v.Story, j.Verdicts[other].Story)
	}
	return &v
}

// Failure is a cause, and the indices of the judgements in which it occurs. The first of these judgements has the
// shortest story.
type Failure struct {
	*checker.Verdict
	In []int
}

// Failures lists the causes of failures; the most frequent one comes first.
func Failures(judged []Judgement) (all []Failure) {
	for i := range judged {
		v := judged[i].failure()
		if v == nil {
			continue
		}
		at := slices.IndexFunc(all, func(x Failure) bool { return Title(x.Verdict) == Title(v) })
		if at < 0 {
			all = append(all, Failure{v, []int{i}})
			continue
		}
		x := &all[at]
		x.In = append(x.In, i)
		if last := len(x.In) - 1; plainer(v, x.Verdict) {
			x.Verdict, x.In[0], x.In[last] = v, i, x.In[0]
		}
	}
	slices.SortStableFunc(all, func(a, b Failure) int { return cmp.Compare(len(b.In), len(a.In)) })
	return all
}

// Means explains the cause in words.
func (x *Failure) Means() string { return glossary.FindCause(x.Cause).Means }

func (x *Failure) write(p *human.Printer, judged []Judgement) {
	first := &judged[x.In[0]]
	names := human.Names(x.In, func(i int) string { return cmp.Or(judged[i].Scenario, judged[i].Name()) })
	p.Line("")
	p.Fact("FAIL", Title(x.Verdict)+" ("+strings.Join(slices.Compact(names), ", ")+")")
	tell(p, x.Verdict)
	p.Maybe("history", first.Saved)
	p.Fact("repeat", first.Command)
}
