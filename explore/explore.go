// Package explore is a model checker for locks. It runs real lock clients against servers in memory, in virtual time,
// in all orders of their messages up to a bound. Each message waits until the search delivers it. checker.Judge
// judges the history of each schedule. The result is about the client's algorithm, not about Redis: there is no
// replication and no disk.
package explore

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/locks"
)

// Options say what to explore. A deviation is a decision that differs from the default, such as a lost message or a
// paused client.
type Options struct {
	Clients    int           // number of clients; each is a separate process, unless Together
	Visits     int           // number of visits of each client
	Sites      int           // number of independent servers
	Deviations int           // largest number of deviations in a schedule; the plain schedule has none
	Budget     time.Duration // limit in real time; 0 = no limit
	TTL        time.Duration // lease
	Hold       time.Duration // time between load and store
	Pause      time.Duration // length of a client's pause
	Delay      time.Duration // length of the delay of all messages; 0 = until the next key expires
	Hang       time.Duration // time for which a server hangs; 0 = longer than the clients' timeouts
	Leap       time.Duration // time by which a clock jumps ahead; 0 = to the end of the next lease
	Together   bool          // all clients are in one process, which does not crash
	// Random adds random schedules with more deviations after the search, until the budget
	// ends. Seed determines them.
	Random bool
	// Schedules, if it is not 0, replaces the search by this number of random schedules. Each has at least one
	// deviation, and at most as many as a schedule of Random.
	Schedules int
	Seed      uint64
	// Unreduced turns partial-order reduction off: the search also explores orders that no client can tell apart.
	Unreduced bool
	// Jobs is the number of schedules that run in parallel; 0 = GOMAXPROCS. The findings do not depend on it.
	Jobs int `json:"Jobs,omitempty"`

	log  io.Writer // gets each schedule before it runs, in case the process dies; nil = no log
	tell func(Progress)
	only act // the only kind of deviation to use; letGo = all kinds
}

// Defaults are two clients with two visits each, on one site, and at most two deviations.
var Defaults = Options{
	Clients: 2, Visits: 2, Sites: 1, Deviations: 2, Budget: time.Minute,
	// no time is a multiple of another: the order of events at the same instant is undefined
	TTL: 300 * time.Millisecond, Hold: 120 * time.Millisecond, Pause: 411 * time.Millisecond,
}

// Briefly returns options for an answer in a second or two: one deviation. A lock on many sites gets three sites, and
// one visit of each client.
func Briefly(s locks.Spec) Options {
	o := Defaults
	if o.Deviations = 1; s.Sites == locks.ManySites {
		o.Sites, o.Visits = 3, 1
	}
	return o
}

// Settings of the clients. patience is the longest time that they wait for the lock: the checker needs that long to
// find that a lock is stuck.
const (
	retry       = 50 * time.Millisecond
	patience    = 5 * time.Second
	readTimeout = time.Second
	serverRound = 2 * time.Millisecond // error of a server's times by rounding, as of real servers
)

func (o *Options) jobs() int { return cmp.Or(o.Jobs, runtime.GOMAXPROCS(0)) }

func (o *Options) program() string {
	text := fmt.Sprintf("%s x %s", counted(o.Clients, "client"), counted(o.Visits, "visit"))
	if o.Sites > 1 {
		text += fmt.Sprintf(" on %d sites", o.Sites)
	}
	return text
}

// Plan describes an exploration before it runs.
func (o *Options) Plan() string {
	text := o.program() + ", "
	if o.Schedules > 0 {
		text += counted(o.Schedules, "random schedule")
	} else {
		text += "all schedules with at most " + counted(o.Deviations, "deviation")
	}
	if text += fmt.Sprintf(", %d at a time", o.jobs()); o.Random && o.Schedules == 0 {
		return text + fmt.Sprintf("; random ones fill the rest of %v", o.Budget)
	}
	return text + fmt.Sprintf(", for at most %v", o.Budget)
}

// Choice is a deviation: decision number At (from 0) took option number Option.
type Choice struct {
	At     int `json:"at"`
	Option int `json:"option"`
	// description of the option; if a replay finds another description here, it has diverged
	What string `json:"what,omitempty"`
	of   int    // number of options of that decision; 0 = do not compare
}

// Level counts the schedules with the same number of deviations.
type Level struct {
	Deviations int `json:"deviations"`
	Schedules  int `json:"schedules"`
	// ended early, because another schedule had been in the same state
	Merged int `json:"merged"`
	Spared int `json:"spared"` // not run, because they would immediately be in the state of another schedule
	// run more than once, until the lock's own random choices were the same as before
	Again    int  `json:"again"`
	Diverged int  `json:"diverged"` // prove nothing: the lock's own choices were different in each try
	Cut      int  `json:"cut"`      // prove nothing, because they were too long
	Left     int  `json:"left"`     // not run, because the budget had ended
	Complete bool `json:"complete"`
}

// Report is the result of an exploration. The zero Report is inconclusive.
type Report struct {
	Lock    string         `json:"lock"`
	Options Options        `json:"options"`
	Status  checker.Status `json:"status"`
	Reason  string         `json:"reason,omitempty"` // why the exploration is inconclusive
	// Excluded means that the lock cannot be explored, even with more time.
	Excluded bool          `json:"excluded,omitempty"`
	Levels   []Level       `json:"levels"`
	Beyond   *Beyond       `json:"beyond,omitempty"`
	Took     time.Duration `json:"took_ns"`
	Found    *Found        `json:"found,omitempty"`
	// Envelope is the result of a sweep; nil = no sweep.
	Envelope *Envelope `json:"envelope,omitempty"`
}

// ReportFile is the name of the file of a saved Report. The history of the counterexample is in the same directory.
const ReportFile = "explore.json"

type Found struct {
	Checker  string            `json:"checker"`
	Cause    string            `json:"cause"`
	Summary  string            `json:"summary"`
	Schedule []Choice          `json:"schedule"`
	Number   int               `json:"number"` // number of its schedule, from 1
	After    time.Duration     `json:"after_ns"`
	Trace    []string          `json:"trace"`
	Messages []Message         `json:"messages,omitempty"`
	Picture  string            `json:"picture,omitempty"` // the trace as an SVG picture
	Verdicts []checker.Verdict `json:"verdicts"`
	History  *history.History  `json:"-"`

	steps int // number of lines of the whole trace
}

// Text returns the trace with a heading.
func (f *Found) Text() string {
	return "        ms   client: what happens (* = a deviation; t1, t2 = tokens)\n" + strings.Join(f.Trace, "\n")
}

// Schedules returns the number of schedules that were run.
func (r *Report) Schedules() (n int) {
	for _, l := range r.Levels {
		n += l.Schedules
	}
	return n
}

// ran returns the number of schedules that were run, with the random ones.
func (r *Report) ran() int { return r.Schedules() + r.Beyond.schedules() }

// Unfinished tells whether the exploration is inconclusive only because it had too little time.
func (r *Report) Unfinished() bool {
	return r.Found == nil && slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Left > 0 })
}

// covered describes how many schedules were run, and how many classes they form. Schedules of one class lead to the
// same state, so only one of them runs to its end. The text also counts the schedules that were run again because the
// lock had made other random choices.
func (r *Report) covered() string {
	all := Level{}
	for _, l := range r.Levels {
		all.Merged, all.Spared, all.Again = all.Merged+l.Merged, all.Spared+l.Spared, all.Again+l.Again
	}
	text := counted(r.Schedules(), "schedule")
	if equal := all.Merged + all.Spared; equal > 0 {
		text += fmt.Sprintf(" (%d classes; %d equal ones were joined)", r.Schedules()-all.Merged, equal)
	}
	if all.Again > 0 {
		text += fmt.Sprintf(" (%d of them run again until the lock's own chance was as before)", all.Again)
	}
	return text
}

// Verdict describes the result in a sentence.
func (r *Report) Verdict() string {
	o, n := &r.Options, len(r.Levels)-1
	of := "of " + o.program()
	took := r.Took.Round(time.Millisecond)
	switch {
	case r.Envelope != nil:
		return fmt.Sprintf("%s, in %v", r.Envelope.verdict(o.TTL), took)
	case r.Found != nil && r.Took == 0:
		return fmt.Sprintf("%s, %s: %s", r.Found.Checker, r.Found.Cause, r.Found.Summary)
	case r.Found != nil:
		return fmt.Sprintf("%s, %s, with %s, in schedule %d after %v", r.Found.Checker, r.Found.Cause,
			counted(len(r.Found.Schedule), "deviation"),
			r.Found.Number, r.Found.After.Round(time.Millisecond))
	case r.Status == checker.Pass && r.Reason != "":
		return r.Reason
	case r.Excluded, r.Schedules() == 0:
		return "not explored: " + r.Reason
	case o.Schedules > 0 && r.Status == checker.Pass:
		return fmt.Sprintf("no violation in %s %s, in %v", r.Beyond, of, took)
	case r.Status == checker.Pass:
		return fmt.Sprintf("no violation in all %s %s with at most %s%s, in %v", r.covered(), of,
			counted(n, "deviation"), r.Beyond.after(", and "), took)
	default:
		return fmt.Sprintf("no violation in %s %s, but not all were run: %s (%v)", counted(r.Schedules(), "schedule"),
			of, r.Reason, took)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Bounded lists the cases that an exploration does not cover.
const Bounded = "not covered: more clients, visits and deviations; other pauses; the server itself (it is a model of " +
	"Redis: no replication, no\n" +
	"failover); a store that is late after its holder's last look at the clock, unless the lock claims fences; " +
	"what any lock loses when\n" +
	"its server forgets its keys or its clock jumps; what a lock would do if chance in it (select, " +
	"timers of one instant) fell otherwise"

// Excluded says why a lock cannot be explored; nil if it can.
func Excluded(s locks.Spec, o Options) error {
	switch {
	case s.Open == nil:
		return fmt.Errorf("%s lives in a program of its own, which virtual time does not reach", s.Name)
	case s.Engine != "":
		return fmt.Errorf("%s is a client of %s: the server in memory is a Redis", s.Name, s.Engine)
	case s.Sites == locks.NoSite && s.Broken == "":
		return fmt.Errorf("%s uses no server: there are no messages to explore", s.Name)
	case !s.Sites.Fits(o.Sites):
		return fmt.Errorf("%s stands on one site, not on %d", s.Name, o.Sites)
	case len(s.Needs) > 0:
		return fmt.Errorf("%s needs commands or connections that the server in memory does not have", s.Name)
	case s.Queues:
		return fmt.Errorf("%s makes workers wait for a mutex while its holder waits for the server: "+
			"virtual time stops then", s.Name)
	case s.Counting != locks.TwoSteps:
		return fmt.Errorf("%s is no lock: it counts in one step", s.Name)
	}
	return nil
}

// Check lists what is wrong with the options.
func (o *Options) Check() (mistakes []string) {
	for _, n := range []struct {
		name           string
		n, least, most int
	}{{"clients", o.Clients, 1, 5}, {"visits", o.Visits, 1, 10}, {"sites", o.Sites, 1, 9},
		{"deviations", o.Deviations, 0, 9}, {"jobs", o.jobs(), 1, 1024}} {
		if n.n < n.least || n.n > n.most {
			mistakes = append(mistakes, fmt.Sprintf("--%s %d: %d to %d", n.name, n.n, n.least, n.most))
		}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"lease", o.TTL}, {"hold", o.Hold}, {"pause", o.Pause}, {"budget", o.Budget}} {
		if d.d < time.Millisecond {
			mistakes = append(mistakes, fmt.Sprintf("--%s %v: at least 1ms", d.name, d.d))
		}
	}
	return mistakes
}
