package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// WithMeasured adds two verdicts on measurements: on the cost of a visit, and on the lock's program. The second comes
// first unless it is a pass. Other verdicts change in two cases: keys were in a database that was not searched, or the
// program answered no ping. All verdicts of a run pass here, and get their remedies.
func WithMeasured(all []Verdict, m *history.Measured, h *history.Header, ttl time.Duration) []Verdict {
	if m != nil && m.Cost != nil {
		all = append(all, weighCost(m.Cost, h))
	}
	Advise(all)
	if m != nil {
		misled(all, m, h)
	}
	if m == nil || m.Driver == nil {
		return all
	}
	v := weighDriver(m.Driver, ttl)
	if v.Status == Pass {
		return append(all, v)
	}
	for i := range all { // if no ping was answered, the program may have been stopped all the time
		if w := &all[i]; m.Driver.Pings == 0 && w.Status == Fail && slices.Contains(waits, w.Cause) {
			w.Status, w.Cause, w.Causes, w.Remedy = Inconclusive, "", nil, ""
			w.Summary = "the driver, which answered no ping, may have kept its waiters waiting: " + w.Summary
		}
	}
	return append([]Verdict{v}, all...)
}

// waits lists the causes which say that waiters are not served. A slow program of a lock keeps waiters waiting, too.
var waits = []string{history.Deadlock, history.Stuck, history.LostWakeup, history.Crossing, history.Starved}

// A client must do these things on every new connection. If it omits one, that shows after connections have broken, or
// immediately if a driver does not pass on its settings.
const (
	selectAgain = "Select the database on every new connection: a client that connects again begins with database 0, " +
		"where other clients do not look. A library that can name none claims defaults: docs/DRIVERS.md."
	logInAgain = "Log in with the user and the password of the site on every new connection. A library that can name " +
		"no user claims defaults: docs/DRIVERS.md."
)

// misled notes, in failed verdicts, that the lock's clients wrote to another database, or were refused as another user.
// Keys in another database were not looked for.
func misled(all []Verdict, m *history.Measured, h *history.Header) {
	remedy := ""
	for _, text := range m.Said {
		if strings.Contains(text, "WRONGPASS") || strings.Contains(text, "NOAUTH") {
			remedy = logInAgain
		}
	}
	if m.Elsewhere != "" {
		remedy = selectAgain
	}
	for i := range all {
		switch v := &all[i]; {
		case v.Status == Fail && remedy != "":
			if m.Elsewhere != "" {
				v.Story = append(v.Story, m.Elsewhere)
			}
			v.advise(strings.TrimSpace(v.Remedy + " " + remedy)) // this may not be the reason
		case v.Status == Pass && v.Checker == history.Liveness && h.Claims.Cleans && m.Elsewhere != "":
			v.Status, v.Summary = Inconclusive, m.Elsewhere+": what was left there was not looked for. "+selectAgain
		}
	}
}

// Prompt is the longest median time of a ping to the lock's program: a tenth of the lease.
func Prompt(lease time.Duration) time.Duration { return lease / 10 }

// weighDriver judges the lock's program: whether it answered, and in time.
func weighDriver(d *history.Driver, lease time.Duration) Verdict {
	v := Verdict{Checker: "driver", Exposed: d.Pings, Summary: d.Text}
	if d.Pings > 0 && lease > 0 && d.Median > Prompt(lease) {
		v.Summary = fmt.Sprintf("the driver, not the lock, was late: the median is above a tenth of the lease (%s); "+
			"give it more of the machine, or a longer --lease; %s",
			Prompt(lease), d.Text)
	} else if d.Pings > 0 && d.Silent == 0 {
		v.Status = Pass
	}
	return v
}

// An uncontended visit to a lock with a lease costs four commands: SET, and a script with GET and DEL. A waiter tries
// once per backoff. More than ten times that, on each server, is a storm.
const (
	commandsOfALease = 4
	storm            = 10
)

// weighCost judges the cost of a visit. The run has a single page, and all workers but the holder wait for it.
func weighCost(c *history.Cost, h *history.Header) Verdict {
	v := Verdict{Checker: "cost", Exposed: c.Visits, Summary: "it is not known what a visit cost"}
	if c.Commands == nil || c.Visits == 0 || h.Retry <= 0 {
		return v
	}
	tries := float64(h.Workers-1) * float64(c.Duration) / float64(c.Visits) / float64(h.Retry)
	most := storm * (commandsOfALease + tries) * float64(max(h.Nodes, 1))
	v.Summary = fmt.Sprintf("a visit costs %s commands, with up to %d waiting", human.Number(*c.Commands), h.Workers-1)
	if c.RoundTrips != nil {
		v.Summary += fmt.Sprintf(", in %s round trips", human.Number(*c.RoundTrips))
	}
	if c.CPU != nil {
		v.Summary += fmt.Sprintf(", and each of %d clients, which hold or wait, takes %s of a CPU", h.Workers,
			human.Percent(*c.CPU))
	}
	v.Summary += fmt.Sprintf("; more than %s would be a storm", human.Number(most))
	if v.Status = Pass; *c.Commands > most {
		v.Status, v.Cause, v.Violations = Fail, history.Storm, c.Visits
		v.Causes, v.Story = map[string]int64{v.Cause: v.Violations}, []string{v.Summary}
	}
	return v
}
