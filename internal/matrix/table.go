package matrix

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/workload"
)

// Summary is a matrix as a whole.
type Summary struct {
	Seed    uint64        `json:"seed"`
	Cells   int           `json:"cells"`
	Green   int           `json:"as_expected"`
	Red     int           `json:"red"`
	Broken  int           `json:"not_run"` // red for that
	Caught  int           `json:"caught"`  // that had to fail and did
	Median  time.Duration `json:"median_detection_ns"`
	Slowest time.Duration `json:"slowest_detection_ns"`
	Holds   int64         `json:"holds"`
	Took    time.Duration `json:"took_ns"`
	LeftOut []LeftOut     `json:"left_out"`
}

// Summarize counts the results.
func Summarize(all []Result) Summary {
	s := Summary{Cells: len(all)}
	var detected []time.Duration
	for i := range all {
		r := &all[i]
		s.Holds += r.Holds
		if !r.Red {
			s.Green++
		} else if s.Red++; r.Error != "" {
			s.Broken++
		}
		if r.Status == checker.Fail && r.Expected.Want == mustFail && !r.Red {
			s.Caught++
			detected = append(detected, r.Detected)
		}
	}
	if len(detected) > 0 {
		slices.Sort(detected)
		s.Median, s.Slowest = detected[len(detected)/2], detected[len(detected)-1]
	}
	return s
}

// WriteText writes the matrix as a table: one row for what passed as expected with a lock on a topology, a row for
// every other cell, and at the end what is red with the command that repeats it.
func WriteText(w io.Writer, all []Result, s Summary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	p := human.Printer{W: t}
	p.Line("LOCK\tTOPOLOGY\tFAULT\tRESULT\tEXPECTED\tHOLDS\tVIOLATIONS\t95 %% BOUND\tDETECTED")
	for _, g := range rows(all) {
		p.Line("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", g.lock, g.topology, g.faults(), g.result, g.expected,
			human.Count(g.holds), human.Count(g.bad), g.bound(), g.detection())
	}
	if err := cmp.Or(p.Err, t.Flush()); err != nil {
		return err
	}
	p = human.Printer{W: w}
	for i := range all {
		if r := &all[i]; r.Red {
			p.Line("\nRED  %s: %s", r.Cell, r.Why)
			p.Line("     history %s", cmp.Or(r.Saved, "none"))
			p.Line("     repeat  %s", r.Command)
		}
	}
	p.Line("")
	s.write(&p)
	return p.Err
}

func (s *Summary) write(p *human.Printer) {
	p.Line("%d cells, %d as expected, %d RED, %s holds, seed %d, %s", s.Cells, s.Green, s.Red, human.Count(s.Holds), s.Seed,
		s.Took.Round(time.Second))
	if s.Caught > 0 {
		p.Line("%d had to fail and did: the first violation was complete after %s (median), %s at the latest", s.Caught,
			human.Duration(s.Median), human.Duration(s.Slowest))
	}
	for _, l := range s.LeftOut {
		p.Line("left out: %s cells: %s", human.Count(int64(l.Cells)), l.Why)
	}
}

// row is a line of the table: one cell, or several that passed.
type row struct {
	lock, topology, result, expected string
	cells                            []string // what is special about each
	holds, bad                       int64
	detected                         time.Duration
	failed                           bool
}

// rows makes the lines: neighbours of one lock and topology that passed as expected share one.
func rows(all []Result) (list []row) {
	var passed *row
	for i := range all {
		r := &all[i]
		special := r.special()
		plain := !r.Red && r.Status == checker.Pass
		if plain && passed != nil && passed.lock == r.Lock && passed.topology == r.Topology && passed.expected == string(r.Expected.Want) {
			passed.cells, passed.holds = append(passed.cells, special), passed.holds+r.Holds
			continue
		}
		n := row{lock: r.Lock, topology: r.Topology, result: r.Word(), expected: string(r.Expected.Want), holds: r.Holds,
			cells: []string{special}, bad: r.Violations, detected: r.Detected, failed: r.Status == checker.Fail}
		if r.Red {
			n.expected = "RED: " + strings.Join(append([]string{n.expected}, r.Expected.Causes...), " ")
		}
		list = append(list, n)
		passed = nil
		if plain {
			passed = &list[len(list)-1]
		}
	}
	return list
}

// special tells a cell from the others of its lock and topology.
func (c *Cell) special() string {
	s := c.Fault
	if c.Counter != workload.RedisCounter.Name {
		s += " [" + c.Counter + "]"
	}
	if c.Processes > 1 {
		s += fmt.Sprintf(" [%d processes]", c.Processes)
	}
	return s
}

const fewFaults = 4 // that are named in a row

func (g *row) faults() string {
	if len(g.cells) <= fewFaults {
		return strings.Join(g.cells, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(g.cells[:fewFaults-1], ", "), len(g.cells)-fewFaults+1)
}

func (g *row) bound() string {
	if g.failed || g.holds == 0 {
		return "-"
	}
	return strings.Replace(fmt.Sprintf("%.1e", bound(g.holds)), "e-0", "e-", 1)
}

func (g *row) detection() string {
	if !g.failed || g.detected == 0 {
		return "-"
	}
	return human.Duration(g.detected)
}
