package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/results"
	"hammerlock/workload"
)

// chapter is a part of the tour: what is shown, why it happens, and the cell that shows it.
type chapter struct {
	Title string
	Text  string
	Cell  Cell
	With  conditions
}

// Chapters lists the tour's chapters in order.
var Chapters = []chapter{
	{"No lock", "Eight workers read a counter, wait two milliseconds, and write one more. Two who read the same value " +
		"write the same value: a page view is lost.", on("none", "single", faults.None), conditions{}},
	{"A mutex, in two processes", "A mutex of the language is a perfect lock, until the service runs twice. Each process " +
		"has a mutex of its own, and they know nothing of each other.",
		Cell{Lock: "local", Topology: "single", Fault: faults.None, Counter: workload.RedisCounter.Name, Processes: 2}, conditions{}},
	{"SETNX and DEL", "The first recipe: who creates the key has the lock. It has no expiry, so when a holder dies nobody " +
		"gets the lock ever again.", on("setnx", "single", "crash-worker"), conditions{}},
	{"SETNX, then EXPIRE", "An expiry, as a second command. Between the two the worker can die: the key stays for ever, " +
		"only more seldom.", on("setnx-expire", "single", "crash-worker@between"), conditions{}},
	{"SET NX PX, and a plain DEL", "The expiry is atomic now. But whose key does the DEL delete? A holder that was slow deletes " +
		"that of its successor, who never notices.", on("plain-del", "single", "stall-worker"), slow},
	{"Compare, then DEL", "So look first whether the key is still ours. In two commands: between the comparison and the DEL " +
		"the lease ends, and the DEL hits somebody else.", on("get-del", "single", "stall-worker@between"), slow},
	{"Deadlines by the clients' clocks", "The deadline is the key's value, and who finds it passed takes over by GETSET: for " +
		"years the official recipe. The late holder's DEL is still a plain one.", on("timestamp", "single", "stall-worker"), slow},
	{"The lease, done right", "SET NX PX with a random token, compared and deleted in one script, believed in from before the " +
		"call. Answers are lost on the way, and no page view is.", on("lease", "single", "drop-reply:40"), conditions{}},
	{"The same lease, on a sentinel", "Replication is asynchronous. A grant is acknowledged, the primary dies, the replica that " +
		"takes its place has never heard of it, and grants the lock again.", on("lease", "sentinel", "lost-grant@300ms"),
		failingOver},
	{"Redlock, two of five hung", "Five independent servers, a majority must grant. Two stop answering, and the lock goes " +
		"on: nothing is lost.", on("redlock", "redlock", "pause-minority@300ms"),
		conditions{Workers: 4, Duration: 4 * time.Second}},
	{"Redlock, a server that forgets", "But a server of the majority that restarts without its keys grants again what it had " +
		"granted. Without fsync, or a delayed restart, Redlock cannot know.", on("redlock", "redlock", "restart-empty"), conditions{}},
	{"The holder that was away", "The best lease ends while its holder still works: a long pause of the garbage collector, a " +
		"stalled disk. No lock can prevent that.", on("lease", "single", "stall-worker"), slow},
	{"The fence", "So every grant draws a number, and the store refuses a smaller one than it has seen. The holder is late " +
		"again, it is refused, and no page view is lost.",
		Cell{Lock: "fenced", Topology: "single", Fault: "stall-worker", Counter: "redis-fenced", Processes: 1}, slow},
}

// lastLine is told where there is a database with a counter that compares fencing tokens.
var lastLine = chapter{"The last line of defence", "A failover forgets a grant again, as on the sentinel above, and two hold the lock. No lock on " +
	"these servers can prevent that, so the verdict is FAIL. But tokens are drawn from the clock, so that no failover repeats one, and the " +
	"page views are in a database that compares them. It refuses the first holder, whose token is the older one, and no page view is lost.",
	on("fenced-clock", "sentinel", "lost-grant@300ms"), failingOver}

// Most chapters take two seconds. A wrong hand-off is a violation only while somebody holds, and a failover takes
// longer.
var (
	chapterLength = conditions{Duration: 2 * time.Second}
	slow          = conditions{Hold: 30 * time.Millisecond, Think: time.Millisecond}
	failingOver   = conditions{TTL: 4 * time.Second, Duration: 4 * time.Second, Wait: 4 * time.Second}
)

// tourWidth is how wide the text runs.
const tourWidth = 92

func on(lock, topology, fault string) Cell {
	return Cell{Lock: lock, Topology: topology, Fault: fault, Counter: workload.RedisCounter.Name, Processes: 1}
}

// Tour shows the chapters, each with a run.
type Tour struct {
	Dir         string // where the runs are saved
	Seed        uint64
	RedisServer string
	Database    workload.CounterSpec // one that compares fencing tokens; the zero spec = there is none
	Out         io.Writer
	Command     func(harness.Plan) string // what repeats a run
}

// Chapters are those that the tour tells.
func (t *Tour) Chapters() []chapter {
	if t.Database.Name == "" {
		return Chapters
	}
	last := lastLine
	last.Cell.Counter = t.Database.Name
	return append(slices.Clip(Chapters), last)
}

// ready is a chapter whose servers are up.
type ready struct {
	run     *harness.Prepared
	lasts   time.Duration
	fenced  bool // the counter compares tokens
	command string
	err     error
}

// mostTries bounds how often a chapter is run until it has shown what it tells.
const mostTries = 4

// Tell shows all chapters. While one runs, the servers of the next start. It returns how many did not end as expected,
// and of how many nothing can be said.
func (t *Tour) Tell(ctx, stop context.Context) (wrong, undecided int, err error) {
	all := t.Chapters()
	next := t.prepare(stop, &all[0], 1)
	for i, c := range all {
		r := <-next
		if i+1 < len(all) {
			next = t.prepare(stop, &all[i+1], 1)
		}
		x, cerr := t.chapter(ctx, stop, i, &c, r)
		switch {
		case cerr != nil:
		case x.undecided():
			undecided++
		case x.Red:
			wrong++
		}
		if err = errors.Join(err, cerr); err != nil || stop.Err() != nil {
			if i+1 < len(all) {
				if unused := <-next; unused.run != nil {
					err = errors.Join(err, unused.run.Close())
				}
			}
			return wrong, undecided, errors.Join(err, context.Cause(stop))
		}
	}
	return wrong, undecided, nil
}

// prepare starts the servers of a try of a chapter, of the first while the chapter before it runs.
func (t *Tour) prepare(stop context.Context, c *chapter, try int) <-chan ready {
	out := make(chan ready, 1)
	go func() {
		m := Run{Expectations: BuiltIn, Seed: t.Seed, Dir: t.Dir, RedisServer: t.RedisServer}
		p := m.plan(c.Cell)
		if c.Cell.Counter == t.Database.Name {
			p.Counter = t.Database
		}
		chapterLength.into(&p)
		c.With.into(&p)
		for range try - 1 {
			p.Repeat(2)
		}
		d := ready{command: t.Command(p), lasts: p.Duration, fenced: p.Counter.Fenced}
		var job *harness.Job
		if job, d.err = p.Check(stop, nil); d.err == nil {
			job.Command = func(harness.Combination) string { return d.command }
			job.Progress = func(harness.Event) {}
			d.run, d.err = job.Prepare(stop)
		}
		out <- d
	}()
	return out
}

// chapter shows one: its text, then a run and its verdict, until it has shown what it tells.
func (t *Tour) chapter(ctx, stop context.Context, number int, c *chapter, r ready) (x Result, err error) {
	p := human.Printer{W: t.Out}
	p.Line("%d. %s", number+1, strings.ToUpper(c.Title))
	for _, row := range human.Wrap(c.Text, tourWidth) {
		p.Line("   %s", row)
	}
	want := BuiltIn.expect(c.Cell)
	for try := 1; ; try++ {
		if r.err != nil {
			return x, errors.Join(p.Err, fmt.Errorf("chapter %d, %s: %w", number+1, c.Title, r.err))
		}
		run, err := r.run.Run(ctx, stop)
		err = errors.Join(err, r.run.Close())
		if err != nil || stop.Err() != nil {
			return x, errors.Join(p.Err, err)
		}
		record := Record{Cell: c.Cell}
		record.observe(run)
		x = compare(record, want)
		if r.fenced {
			x.guarded(run.Views)
		}
		p.Line("")
		for _, row := range human.Wrap(verdictLine(&record, run), tourWidth) {
			p.Line("   %s", row)
		}
		if try == mostTries || !unshown(&record, want) && (!r.fenced || run.Views.Fenced > 0) {
			explain(&p, &x, run)
			p.Line("   %s", r.command)
			p.Line("")
			return x, p.Err
		}
		r = <-t.prepare(stop, c, try+1)
		p.Line("   This run did not show it, so the chapter is run again, for %s.", r.lasts)
	}
}

// unshown tells whether to run a chapter once more, because its run has not shown what the chapter tells. A right lock
// that failed has shown enough.
func unshown(r *Record, e expectation) bool {
	return again(r, e) || e.Want == mustFail && compare(*r, e).Red || e.Want == mayFail && r.Status != checker.Fail
}

// guarded expects of a run, too, that its fence works: a late holder is refused, and nothing is lost.
func (r *Result) guarded(v results.Views) {
	switch {
	case r.Red || r.Status == checker.Inconclusive:
	case v.Lost > 0:
		r.Why = fmt.Sprintf("%s page views were lost behind a fence", human.Count(v.Lost))
	case v.Fenced == 0:
		r.Why = "nobody was refused"
	}
	r.Red = r.Why != ""
}

// undecided tells that a run says nothing about what was expected of it.
func (r *Result) undecided() bool { return r.Red && r.Status == checker.Inconclusive }

// explain writes the evidence of a chapter's run, and what is wrong with it.
func explain(p *human.Printer, x *Result, run *results.Run) {
	for _, sentence := range story(run, x.Expected.Causes) {
		for i, row := range human.Wrap(sentence, tourWidth-4) {
			p.Line("   %s %s", []string{"-", " "}[min(i, 1)], row)
		}
	}
	if x.Red && !x.undecided() {
		p.Line("   UNEXPECTED: %s", x.Why)
	}
}

// verdictLine is the verdict of a chapter's run in a line.
func verdictLine(r *Record, run *results.Run) string {
	views := fmt.Sprintf("%s page views, %s lost", human.Count(run.Views.Acknowledged), human.Count(run.Views.Lost))
	if run.Views.Fenced > 0 {
		views += ", " + human.Quantity(run.Views.Fenced, "older token") + " refused"
	}
	word := strings.ToUpper(r.Status.String()) + "  "
	switch r.Status {
	case checker.Pass:
		return word + views
	case checker.Inconclusive:
		return word + r.Summary + "; " + views
	}
	return word + r.cause() + "; " + views
}

// story is the evidence of the verdict that shows one of the causes, or of the first that failed.
func story(run *results.Run, causes []string) []string {
	var first []string
	for i := range run.Verdicts {
		v := &run.Verdicts[i]
		if v.Status != checker.Fail || len(v.Story) == 0 {
			continue
		}
		if first == nil || slices.Contains(causes, v.Cause) && !slices.Contains(causes, run.Verdicts[0].Cause) {
			first = v.Story
		}
		if slices.Contains(causes, v.Cause) {
			return v.Story
		}
	}
	return first
}
