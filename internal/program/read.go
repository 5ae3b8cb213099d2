package program

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/internal/witness"
	"hammerlock/results"
	"hammerlock/topologies"
)

// Since returns the operations so far, except for the first n. Later replies may still change them.
func (s *Source) Since(n int) []history.Op { return s.reader.Since(n) }

// Written returns the history so far or, if the argument over is true, the final history of a watch that has ended. The
// argument own has operations that the suite itself recorded, such as faults.
func (s *Source) Written(own history.History, over bool) *history.History {
	s.mu.Lock()
	gone := s.program == nil || s.program.State() == topologies.Down
	s.mu.Unlock()
	if s.spec.Scenario && over {
		happened(&own)
	}
	h := &history.History{}
	switch {
	case s.recorder != nil && over:
		h = witness.Join(&own, s.recorder.latest(s.reader.End(), latestKept), anyLock)
	case s.recorder != nil: // the files of the recorder have the operations
		s.recorder.rest(s.clock.Now(), s.reader.Rest)
		h = witness.Join(&own, nil, anyLock)
	case over:
		h = s.reader.History(&own, gone && (s.spec.Command != "" || s.spec.Service))
	default:
		h = s.reader.SoFar(&own)
	}
	sums, _ := s.reader.Sums()
	h.Wire = s.limits(&sums)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own, s.workers, s.keys = own, h.Workers, h.Keys
	return h
}

// The function happened removes faults that were never injected, because the program did not send the command at
// which they begin.
func happened(h *history.History) {
	for n := len(h.Faults) - 1; n >= 0; n-- {
		if slices.ContainsFunc(h.Ops, func(op history.Op) bool { return op.Value == int64(n) }) {
			continue
		}
		h.Faults = slices.Delete(slices.Clone(h.Faults), n, n+1)
		for i := range h.Ops {
			if h.Ops[i].Value > int64(n) {
				h.Ops[i].Value--
			}
		}
	}
}

// Crashed records that a fault killed the program at the given time.
func (s *Source) Crashed(at time.Duration) {
	s.mu.Lock()
	killed := s.program != nil && s.program.Killed()
	s.mu.Unlock()
	if killed {
		s.reader.Crashed(at)
	}
}

// Lease returns the longest lease that was granted.
func (s *Source) Lease() time.Duration {
	sums, _ := s.reader.Sums()
	return sums.Lease
}

// Fill adds to the record of a run what was read. Call it after the history of the run was written.
func (s *Source) Fill(r *results.Run) {
	sums, _ := s.reader.Sums()
	numbers := s.Locks()
	r.Wire, r.Seen, r.Locks = s.text(&sums), append(s.seen(&sums), numbers.Facts()...), &numbers
	r.Workers, r.Keys, r.Processes = s.workers, s.keys, 1
	r.Visits = results.Visits{Begun: sums.Grants, Done: sums.Grants}
	r.Measured = int64(time.Since(s.started))
	r.Duration = r.Measured
	if s.recorder != nil { // the history now has the operations
		s.recorder.stop()
		_ = os.RemoveAll(s.recorder.dir)
	}
}

// limits describes to the user what the watch could not see.
func (s *Source) limits(t *witness.Tallies) string {
	by := "the server's replication stream told what commands did"
	switch {
	case s.spec.TapOnly:
		by = "only the server's replication stream told what was done, and not by whom"
	case len(s.deaf) > 0:
		by = "only requests and answers told what commands did, not the server: " + strings.Join(s.deaf, "; ")
	}
	if t.TapsLost > 0 {
		by += "; the stream broke " + human.Quantity(t.TapsLost, "time")
	}
	return by + "; what holders believe, and what they do without a command, cannot be seen"
}

// text describes the counts in one line. It leaves out requests if only replication streams are read.
func (s *Source) text(t *witness.Tallies) string {
	parts := []string{human.Quantity(t.Effects, "effect"), human.Quantity(t.Grants, "grant"),
		human.Quantity(t.Releases, "release"), human.Count(t.Expiries) + " expired"}
	if s.spec.TapOnly {
		return strings.Join(parts, " · ")
	}
	parts = append([]string{human.Quantity(t.Requests, "request") + " about locks"},
		append(parts, human.Count(t.Refused)+" refused")...)
	if t.Grants > 0 {
		parts = append(parts, human.Number(float64(t.Refused+t.Grants)/float64(t.Grants))+" tries a grant")
	}
	return strings.Join(parts, " · ")
}

// seen lists observations that are not violations, such as traffic that has several explanations.
func (s *Source) seen(t *witness.Tallies) (all []results.Fact) {
	promise := "; --holder connection says that each connection serves one holder at a time"
	if s.spec.Service { // the command "verify http" lacks --holder
		promise = ""
	}
	count := func(n int64, what string) {
		if n > 0 {
			all = append(all, results.Fact{Label: "seen", Text: human.Count(n) + " " + what})
		}
	}
	count(t.Ambiguous, "releases or extensions of which it cannot be told whose they were; they are judged as unknown")
	count(t.Guesses,
		"answers that only the connection can attribute, where connections serve several holders at a time; "+
			"they are judged as unknown"+promise)
	if t.Requests+t.Effects == 0 && len(t.Elsewhere) > 0 {
		quoted := func(key string) string { return fmt.Sprintf("%.40q", key) }
		all = append(all, results.Fact{Label: "seen", Text: "no lock: no key matches --locks " +
			strings.Join(s.spec.Locks, ",") + "; the first keys were " +
			strings.Join(human.Names(t.Elsewhere, quoted), ", ")})
	}
	if !s.spec.TapOnly {
		count(t.Outsiders,
			"changes of locks that no seen command names: by scripts that make the names of keys, or past the proxy")
	}
	count(t.Unreleased, "grants that were never given back")
	count(t.Adrift, "locks that were held when their server began another history, as after a failover: it may have "+
		"forgotten them, and what became of them was not seen")
	count(t.InVain, fmt.Sprintf("tries were refused by %s of clients whose connections had ended, more than a second "+
		"after that and after their leases: if these clients are dead, the lock is never granted again",
		human.Quantity(t.Orphaned, "hold")))
	if count(t.Strange, "keys or scripts with commands that are not understood"); t.StrangeAs != "" {
		all[len(all)-1].Text += ", as " + t.StrangeAs + ": what they did to a lock is not judged"
	}
	count(t.Passed, "connections that were passed on unseen")
	if c := s.recorder; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		count(c.lost, "pieces of the flight recorder that the disk had no time or no room for: cuts begin behind them")
		count(c.left, "violations that were not cut out: there were too many")
	}
	loose := "commands on data that belong to no visit, or cannot be attributed: lost updates are not judged there"
	if t.Improper > 0 {
		loose += promise
	}
	count(t.DataLoose, loose)
	if !s.spec.TapOnly {
		count(t.DataUnrequested,
			"stores of data that no seen command explains: by scripts, or past the proxy; they belong to no holder, "+
				"and lost updates are not judged there")
	}
	count(t.DataUnsure, "keys with data whose reads can have seen several writes: lost updates are not judged there")
	for _, note := range s.notes {
		all = append(all, results.Fact{Label: "program", Text: note})
	}
	if s.over != "" && s.spec.Command == "" && !s.spec.Service {
		all = append(all, results.Fact{Label: "ended", Text: s.over})
	}
	return all
}

// LockRows returns the measurements of the locks so far, for a dashboard or for metrics.
func (s *Source) LockRows() (all measure.LockState) {
	now := cmp.Or(time.Duration(s.until.Load()), s.clock.Now())
	all.Rows, all.Hot = s.meter.Numbers(now, s.reader.Open(now))
	all.Taps = map[string]bool{}
	for _, x := range s.servers {
		if !s.spec.Untapped {
			all.Taps[x.Addrs[0]] = x.up.Load()
		}
	}
	return all
}

// Locks returns the measurements of the locks so far, for the record of the run.
func (s *Source) Locks() (all results.Locks) {
	now := s.LockRows()
	for i := range now.Rows {
		all.Numbers = append(all.Numbers, now.Rows[i].LockNumbers)
	}
	all.Hot = now.Hot
	return all
}

// Grants returns the number of grants so far.
func (s *Source) Grants() int64 {
	sums, _ := s.reader.Sums()
	return sums.Grants
}

// Places returns the addresses at which clients can connect.
func (s *Source) Places() string { return strings.Join(s.places, "; ") }

// Describe adds to the header of the history what a judge must know about a watch. For example, liveness and fairness
// are not judged, because the program may wait for as long as it likes.
func (s *Source) Describe(h *history.Header) {
	h.Sites, h.Nodes, h.Bounds.Round = s.sites(), len(s.servers), witness.Round
	if h.NotAbout = []string{history.Liveness, history.Fairness}; len(s.spec.Data) == 0 {
		h.NotAbout = append(h.NotAbout, history.Updates)
	}
	if s.spec.TapOnly {
		const why = "a replication stream alone does not show "
		h.Unseen = map[string]string{history.Calls: why + "how long calls take",
			history.Fairness: why + "who waits, and for how long"}
	}
}
