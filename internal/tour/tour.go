// Package tour shows how locks fail. It has chapters, each about one typical lock, with a short run on real servers.
package tour

import (
	"cmp"
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
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// chapter explains a typical lock, and names the run that shows how it fails or holds.
type chapter struct {
	Title, Text           string
	Lock, Topology, Fault string
	With                  func(*harness.Plan) // changes the plan of the run; nil = no change
}

// Chapters lists the chapters of the tour, in order.
var Chapters = []chapter{
	{"No lock", "Eight workers read a counter, wait two milliseconds, and write one more. " +
		"Two who read the same value write the same value: a page view is lost.", "none", "single", faults.None, nil},
	{"A mutex, in two processes",
		"A mutex of the language is a perfect lock, until the service runs twice. Each process " +
			"has a mutex of its own, and they know nothing of each other.",
		"local", "single", faults.None, func(p *harness.Plan) { p.Processes = 2 }},
	{"SETNX and DEL",
		"The first recipe: who creates the key has the lock. It has no expiry, so when a holder dies, no worker " +
			"gets the lock again.", "setnx", "single", "crash-worker", nil},
	{"SETNX, then EXPIRE",
		"An expiry, as a second command. Between the two the worker can die: the key stays for ever, " +
			"only more seldom.", "setnx-expire", "single", "crash-worker@between", nil},
	{"SET NX PX, and a plain DEL",
		"The expiry is atomic now. But whose key does the DEL delete? A holder that was slow deletes " +
			"that of its successor, who never notices.", "plain-del", "single", "stall-worker", slow},
	{"Compare, then DEL",
		"So look first whether the key is still ours. In two commands: between the comparison and the DEL " +
			"the lease ends, and the DEL hits the lock of another worker.", "get-del", "single", "stall-worker@between",
		slow},
	{"Deadlines by the clients' clocks",
		"The deadline is the key's value, and who finds it passed takes over by GETSET: for " +
			"years the official recipe. The late holder's DEL is still a plain one.", "timestamp", "single",
		"stall-worker",
		slow},
	{"The lease, done right",
		"SET NX PX with a random token, compared and deleted in one script, believed in from before the " +
			"call. Answers are lost on the way, and no page view is.", "lease", "single", "drop-reply:40", nil},
	{"The same lease, on a sentinel",
		"Replication is asynchronous. A grant is acknowledged, the primary dies, the replica that " +
			"takes its place has never heard of it, and grants the lock again.", "lease", "sentinel",
		"lost-grant@300ms",
		failingOver},
	{"Redlock, two of five hung",
		"Five independent servers, a majority must grant. Two stop answering, and the lock goes " +
			"on: nothing is lost.", "redlock", "redlock", "pause-minority@300ms", hung},
	{"Redlock, a server that forgets",
		"But a server of the majority that restarts without its keys grants again what it had " +
			"granted. Without fsync, or a delayed restart, Redlock cannot know.", "redlock", "redlock", "restart-empty",
		nil},
	{"The holder that was away",
		"The best lease ends while its holder still works: a long pause of the garbage collector, a " +
			"stalled disk. No lock can prevent that.", "lease", "single", "stall-worker", slow},
	{"The fence", "So every grant draws a number, and the store refuses a smaller one than it has " +
		"seen. The holder is late again, it is refused, and no page view is lost.",
		"fenced", "single", "stall-worker", func(p *harness.Plan) { slow(p); p.Counter = workload.RedisFenced }},
}

// lastLine is a further chapter, for a tour that has a database whose counter compares fencing tokens.
var lastLine = chapter{"The last line of defence",
	"A failover forgets a grant again, as on the sentinel above, and two hold the lock. No lock on " +
		"these servers can prevent that, so the verdict is FAIL. But tokens are drawn from the clock, " +
		"so that no failover repeats one, and the page views are in a database that compares them. " +
		"It refuses the first holder, whose token is the older one, and no page view is lost.",
	"fenced-clock", "sentinel", "lost-grant@300ms", nil}

// slow makes holds long. Then, after a wrong hand-off, the earlier holder is still there when the next one arrives.
func slow(p *harness.Plan) { p.Workload.Hold, p.Workload.Think = 30*time.Millisecond, time.Millisecond }

func failingOver(p *harness.Plan) {
	p.Workload.TTL, p.Workload.Wait, p.Duration = 4*time.Second, 4*time.Second, 4*time.Second
}

func hung(p *harness.Plan) { p.Workload.Workers, p.Duration = 4, 4*time.Second }

// Short returns the plan of a short run with short leases, for a lock on a topology with a fault.
func Short(lock locks.Spec, topology topologies.Spec, fault string) harness.Plan {
	p := harness.Default()
	p.Topologies, p.Locks, p.Faults = []topologies.Spec{topology}, []locks.Spec{lock}, []string{fault}
	p.Verify, p.Warmup, p.Attempts, p.Duration = true, 0, 1, 2*time.Second
	w := &p.Workload
	w.Workers, w.TTL, w.Wait = 8, time.Second, 3*time.Second
	w.Hold, w.Think, w.Retry = 2*time.Millisecond, 2*time.Millisecond, 2*time.Millisecond
	if topology.Sites > 1 { // simultaneous tries split the votes of the sites, and five servers load the machine more
		w.Workers, w.Think, w.Retry, p.Duration = 4, 5*time.Millisecond, 10*time.Millisecond, 3500*time.Millisecond
	}
	return p
}

// find returns the chapter's lock and topology. A test checks that both exist.
func (c *chapter) find() (locks.Spec, topologies.Spec) {
	lock, _ := known.Find(c.Lock)
	topology, _ := topologies.Find(c.Topology)
	return lock, topology
}

// causes returns the expected causes of a chapter: the run must fail with one of them. If it returns nil, the run
// must pass. The argument fenced is true if the counter compares fencing tokens.
func (c *chapter) causes(fenced bool) []string {
	lock, _ := c.find()
	fault, _, _ := strings.Cut(c.Fault, "@")
	if lock.Broken != "" || fault == faults.None {
		fault = ""
	}
	if fenced && fault != "lost-grant" { // a fence rejects late stores, but not those of two simultaneous holders
		return nil
	}
	return lock.Expected(fault)
}

// tourWidth is the width of the text, in columns.
const tourWidth = 92

// Tour prints the chapters, and the results of their runs.
type Tour struct {
	Seed        uint64
	RedisServer string
	Database    workload.CounterSpec // a counter that compares fencing tokens; zero = none
	Out         io.Writer
	Command     func(harness.Plan) string // returns the command line that repeats a run
}

// Chapters returns the chapters of this tour. With a database, they include lastLine.
func (t *Tour) Chapters() []chapter {
	if t.Database.Name == "" {
		return Chapters
	}
	last := lastLine
	last.With = func(p *harness.Plan) { failingOver(p); p.Counter = t.Database }
	return append(slices.Clip(Chapters), last)
}

// Tell prints all chapters. It calls the function run for each plan, and prints the results. It returns the number of
// chapters with a wrong result, and of those without a result. It stops at the first error.
func (t *Tour) Tell(run func(harness.Plan) (*results.Run, error)) (wrong, undecided int, err error) {
	for i, c := range t.Chapters() {
		shows, err := t.chapter(run, i, &c)
		switch {
		case err != nil:
			return wrong, undecided, err
		case shows == checker.Inconclusive:
			undecided++
		case shows == checker.Fail:
			wrong++
		}
	}
	return wrong, undecided, nil
}

// plan returns the plan of the first run of a chapter.
func (t *Tour) plan(c *chapter) harness.Plan {
	lock, topology := c.find()
	p := Short(lock, topology, c.Fault)
	p.Workload.Seed, p.RedisServer = t.Seed, t.RedisServer
	if c.With != nil {
		c.With(&p)
	}
	return p
}

// chapter prints the text of a chapter and makes its run. If the run does not show the expected effect, a longer one
// follows. It returns Pass if the effect was shown.
func (t *Tour) chapter(carryOut func(harness.Plan) (*results.Run, error), number int, c *chapter) (
	shows checker.Status, err error) {
	p := human.Printer{W: t.Out}
	p.Line("%d. %s", number+1, strings.ToUpper(c.Title))
	for _, row := range human.Wrap(c.Text, tourWidth) {
		p.Line("   %s", row)
	}
	var run *results.Run
	var why, command string
	causes, fenced := []string(nil), false
	for plan := range harness.Doubling.Of(t.plan(c)) {
		if run != nil {
			p.Line("   This run did not show it, so the chapter is run again, for %s.", plan.Duration)
		}
		command, fenced = t.Command(plan), plan.Counter.Fenced
		causes = c.causes(fenced)
		if run, err = carryOut(plan); err != nil {
			return shows, errors.Join(p.Err, fmt.Errorf("chapter %d, %s: %w", number+1, c.Title, err))
		}
		shows, why = met(causes, run, fenced)
		p.Line("")
		for _, row := range human.Wrap(verdictLine(run), tourWidth) {
			p.Line("   %s", row)
		}
		if shows == checker.Pass || len(causes) == 0 && run.Failed() || fenced && run.Views.Lost > 0 {
			break
		}
	}
	explain(&p, run, causes, why)
	p.Line("   %s", command)
	p.Line("")
	return shows, p.Err
}

// The function met compares a run with the expected causes. The result why tells what differs. If the counter
// compares fencing tokens, it must have refused a store, and no page view may be lost.
func met(causes []string, run *results.Run, fenced bool) (met checker.Status, why string) {
	status, summary := run.Safety()
	met, _ = results.Met(causes, status, run.Verdicts)
	switch {
	case met == checker.Inconclusive:
		return met, ""
	case met == checker.Fail && len(causes) == 0:
		return met, "it must pass: " + summary
	case met == checker.Fail:
		return met, "it must fail with " + strings.Join(causes, " or ")
	case fenced && run.Views.Lost > 0:
		return checker.Fail, fmt.Sprintf("%s page views were lost behind a fence", human.Count(run.Views.Lost))
	case fenced && run.Views.Fenced == 0:
		return checker.Fail, "no store was refused"
	}
	return met, ""
}

// explain prints the evidence for the result of a chapter's run, and what differs from the expectation.
func explain(p *human.Printer, run *results.Run, causes []string, why string) {
	for _, sentence := range story(run, causes) {
		for i, row := range human.Wrap(sentence, tourWidth-4) {
			p.Line("   %s %s", []string{"-", " "}[min(i, 1)], row)
		}
	}
	if why != "" {
		p.Line("   UNEXPECTED: %s", why)
	}
}

func verdictLine(run *results.Run) string {
	views := fmt.Sprintf("%s page views, %s lost", human.Count(run.Views.Acknowledged), human.Count(run.Views.Lost))
	if run.Views.Fenced > 0 {
		views += ", " + human.Quantity(run.Views.Fenced, "older token") + " refused"
	}
	status, text := run.Safety()
	if i := slices.IndexFunc(run.Verdicts, func(v checker.Verdict) bool { return v.Status == checker.Fail }); i >= 0 {
		text = cmp.Or(run.Verdicts[i].Cause, run.Verdicts[i].Checker)
	}
	word := strings.ToUpper(status.String()) + "  "
	if status == checker.Pass {
		return word + views
	}
	return word + text + "; " + views
}

// story returns the evidence for the verdict with an expected cause. Without such a verdict, it returns the evidence
// for the first one that failed.
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
