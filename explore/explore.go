// Package explore is a model checker for locks: it runs real lock clients against servers in memory, in virtual time,
// in all orders of their messages up to a bound. Each message waits until the search delivers it. checker.Judge judges
// the history of each schedule. The result is about the client's algorithm, not about Redis: there is no replication
// and no disk.
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

// Options say what is explored. A deviation is a decision that differs from the default, such as a lost message or a
// paused client.
type Options struct {
	Clients    int           // number of clients; each is a process of its own, unless Together
	Visits     int           // of each client
	Sites      int           // independent servers
	Deviations int           // maximal number of deviations in a schedule; the schedule with none is the plain one
	Budget     time.Duration // real time for the exploration; 0 = no limit
	TTL        time.Duration // of a lease
	Hold       time.Duration // time between load and store
	Pause      time.Duration // duration of the deviation that pauses a client
	Delay      time.Duration // duration of the deviation that delays all messages; 0 = until the next key expires
	Hang       time.Duration // duration of the deviation that stops a server; 0 = longer than the clients' timeouts
	Leap       time.Duration // how far a clock jumps ahead; 0 = to the end of the next lease
	Together   bool          // all clients are in one process and share what their locks share; it does not crash
	// Random means that schedules with more deviations follow until the time budget ends. They are drawn by the seed.
	Random bool
	// Schedules is a number of random schedules, with one deviation up to as many as Random uses, to run in place of
	// the search.
	Schedules int
	Seed      uint64
	// Unreduced turns partial-order reduction off: it also explores orders that differ in nothing that a client can
	// see.
	Unreduced bool
	// Jobs is how many schedules run in parallel; 0 = GOMAXPROCS. The findings do not depend on it.
	Jobs int `json:"Jobs,omitempty"`

	log  io.Writer // log gets each schedule before it is run, in case the process does not survive it; nil = not logged
	tell func(Progress)
	only act // the only kind of deviation to use; letGo = all kinds
}

// Defaults are two clients with two visits each, on one site, and at most two deviations.
var Defaults = Options{
	Clients: 2, Visits: 2, Sites: 1, Deviations: 2, Budget: time.Minute,
	// no time is a multiple of another, because the order of things at the same instant is undefined
	TTL: 300 * time.Millisecond, Hold: 120 * time.Millisecond, Pause: 411 * time.Millisecond,
}

// Briefly returns options for an answer in a second or two: with one deviation. For a lock on many sites it allows
// three, with one visit for each client.
func Briefly(s locks.Spec) Options {
	o := Defaults
	if o.Deviations = 1; s.Sites == locks.ManySites {
		o.Sites, o.Visits = 3, 1
	}
	return o
}

// Settings of the clients. Their patience is as long as the checker needs to find that a lock is stuck.
const (
	retry       = 50 * time.Millisecond
	patience    = 5 * time.Second
	readTimeout = time.Second
	serverRound = 2 * time.Millisecond // round like real servers, which round times to milliseconds
)

func (o *Options) jobs() int { return cmp.Or(o.Jobs, runtime.GOMAXPROCS(0)) }

// program describes the clients and their visits.
func (o *Options) program() string {
	text := fmt.Sprintf("%s x %s", counted(o.Clients, "client"), counted(o.Visits, "visit"))
	if o.Sites > 1 {
		text += fmt.Sprintf(" on %d sites", o.Sites)
	}
	return text
}

// Plan describes what an exploration will do, and for how long.
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

// Choice is a deviation: at decision number At, counted from 0, option number Option was taken.
type Choice struct {
	At     int `json:"at"`
	Option int `json:"option"`
	// description of the option; if a replay finds another one at this place, it has diverged
	What string `json:"what,omitempty"`
	of   int    // number of options at that decision; 0 = not compared
}

// Level has the counts of schedules with the same number of deviations.
type Level struct {
	Deviations int `json:"deviations"`
	Schedules  int `json:"schedules"`
	// ended early, because another schedule had been in the same state
	Merged int `json:"merged"`
	Spared int `json:"spared"` // not run, because they would at once be in a state of another schedule
	// run more than once, until the lock's own random choices were the same as before
	Again    int  `json:"again"`
	Diverged int  `json:"diverged"` // proved nothing: no replay was the same as before
	Cut      int  `json:"cut"`      // proved nothing: they were too long
	Left     int  `json:"left"`     // not run, because the time budget had ended
	Complete bool `json:"complete"`
}

// Report is the result of an exploration. The zero Report claims nothing.
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
	// Envelope is the result of a sweep; nil if there was none.
	Envelope *Envelope `json:"envelope,omitempty"`
}

// Found is a counterexample.
type Found struct {
	Checker  string            `json:"checker"`
	Cause    string            `json:"cause"`
	Summary  string            `json:"summary"`
	Schedule []Choice          `json:"schedule"`
	Number   int               `json:"number"` // number of its schedule, counted from 1
	After    time.Duration     `json:"after_ns"`
	Trace    []string          `json:"trace"`
	Messages []Message         `json:"messages,omitempty"`
	Picture  string            `json:"picture,omitempty"` // the trace as an SVG picture
	Verdicts []checker.Verdict `json:"verdicts"`
	History  *history.History  `json:"-"`

	steps int // number of lines of the whole trace
}

// Text is the trace, with a heading that explains its columns.
func (f *Found) Text() string {
	return "        ms   client: what happens (* = a deviation; t1, t2 = tokens)\n" + strings.Join(f.Trace, "\n")
}

// Schedules is the number of schedules that were run.
func (r *Report) Schedules() (n int) {
	for _, l := range r.Levels {
		n += l.Schedules
	}
	return n
}

// Unfinished tells whether the exploration is inconclusive only because it had too little time.
func (r *Report) Unfinished() bool {
	return r.Found == nil && slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Left > 0 })
}

// covered describes how many schedules were run, into how many classes of equivalent schedules all fall (of each class
// only one runs to its end), and how many were repeated because the lock had made another random choice.
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

// Verdict describes in a sentence what was found.
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

// counted formats a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Bounded says what an exploration without a violation does not show.
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
