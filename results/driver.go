package results

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Driver has the measurements of a lock that runs in an external program. A ping is an empty request: it measures
// how long the communication with the program takes. All latencies of the lock include this time.
type Driver struct {
	Command  string `json:"command"`
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	Pings    int64  `json:"pings"`
	P50      int64  `json:"ping_p50_ns"`
	P99      int64  `json:"ping_p99_ns"`
	Max      int64  `json:"ping_max_ns"`
	Noise    int64  `json:"noise_lines,omitempty"` // number of lines on its standard output that are no messages
	Sample   string `json:"noise,omitempty"`       // the first such line
	// number of calls without an answer in time; only in old runs
	Silent   int64            `json:"unanswered,omitempty"`
	Failures map[string]int64 `json:"errors,omitempty"` // number of errors from the program, by text
	// For a program that waits inside its calls: the number of refusals that came more than a second too late, and
	// the largest delay.
	Late   int64 `json:"late_refusals,omitempty"`
	LateBy int64 `json:"late_refusals_max_ns,omitempty"`
	// The program ignored the simulated wall clock, so this run does not test wrong clocks.
	ClockUnread bool `json:"clock_unread,omitempty"`
}

const clockUnread = "its wall clock was set, but the program did not read it through the C library: clocks were " +
	"not tried"

// Text describes the pings and the misbehaviour of the program; empty if d is nil.
func (d *Driver) Text() string {
	if d == nil {
		return ""
	}
	parts := []string{"no ping was answered within the measurement"}
	if d.Pings > 0 {
		parts[0] = fmt.Sprintf("a ping takes %s (p50), %s (p99), %s (max) of %s; every time includes it",
			human.Duration(time.Duration(d.P50)),
			human.Duration(time.Duration(d.P99)), human.Duration(time.Duration(d.Max)), human.Quantity(d.Pings, "ping"))
	}
	if d.Silent > 0 {
		parts = append([]string{human.Quantity(d.Silent, "call") + " had no answer: every request has one, in time"},
			parts...)
	}
	if d.ClockUnread {
		parts = append(parts, clockUnread)
	}
	if d.Late > 0 {
		parts = append(parts, fmt.Sprintf("%s came up to %s after wait_ms, although it claims waits: bound the pause "+
			"between two tries by what is left of wait_ms", human.Quantity(d.Late, "refusal"),
			human.Duration(time.Duration(d.LateBy))))
	}
	if d.Noise > 0 {
		parts = append(parts,
			fmt.Sprintf("%s on its standard output were no messages, such as %s: print to standard error",
				human.Quantity(d.Noise, "line"), d.Sample))
	}
	var failures []string
	for text, n := range d.Failures {
		failures = append(failures, human.Count(n)+" of "+text)
	}
	if slices.Sort(failures); len(failures) > 0 {
		parts = append(parts, "errors that it answered: "+strings.Join(failures, ", "))
	}
	return strings.Join(parts, "; ")
}
