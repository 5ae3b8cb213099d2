package results

import (
	"fmt"
	"io"
	"math"
	"slices"

	"hammerlock/internal/human"
)

// Answer is one row, for a topology, in the first table that the command "make bench" prints.
type Answer struct {
	Run        *Run   // run with an open loop
	Crowd      *Run   // run with a closed loop; nil = there was none
	Safe, Gone string // when a server dies: whether grants survive, and how long the lock is unavailable
}

type answerColumn struct {
	over, head, layout string
	name               string // name of the number in the note below; empty = the column is not measured
	text               func(*Answer) string
	number             func(*Answer) float64
	spread             func(*Answer) [2]float64   // range in which the number varies; nil = the number has no noise
	better             func(a, b [2]float64) bool // reports whether all of range a is better than all of range b
}

func lower(a, b [2]float64) bool  { return a[1] < b[0] }
func higher(a, b [2]float64) bool { return a[0] > b[1] }

// numberOf returns a function that reads a latency from a row. If a latency is unknown, the function returns
// infinity.
func numberOf(name string) func(*Answer) float64 {
	return func(a *Answer) float64 {
		if r := metric(name).Of(a.Run); r.Support == Supported {
			return r.Value
		}
		return math.Inf(1)
	}
}

// answerColumns are the columns of the table. The function spread returns the noise of a number as a range. For a
// p50, the range goes from the lowest to the highest p50 of single seconds of the run. For a p99, it goes from the
// p90 to the maximum.
var answerColumns = []answerColumn{
	{"safe when a", "server dies?", "%-20s", "", func(a *Answer) string { return a.Safe }, nil, nil, nil},
	{"the lock is", "gone for", "%-16s", "", func(a *Answer) string { return a.Gone }, nil, nil, nil},
	{"acquire", "p50", "%-9s", "acquire p50", func(a *Answer) string { return textOf("acquire.p50")(a.Run) },
		numberOf("acquire.p50"),
		func(a *Answer) [2]float64 {
			return [2]float64{float64(a.Run.Swing.Acquire[0]), float64(a.Run.Swing.Acquire[1])}
		}, lower},
	{"", "p99", "%-9s", "acquire p99", func(a *Answer) string { return textOf("acquire.p99")(a.Run) },
		numberOf("acquire.p99"),
		func(a *Answer) [2]float64 {
			p := &a.Run.Latency.Acquire
			if p.P90 == nil {
				return [2]float64{0, math.Inf(1)}
			}
			return [2]float64{float64(*p.P90), float64(p.Max)}
		}, lower},
	{"trips", "a visit", "%-8s", "", func(a *Answer) string { return textOf("cost.round_trips")(a.Run) },
		nil, nil, nil},
	{"crowd", "visits/s", "%s", "crowd visits/s", func(a *Answer) string {
		if a.Crowd == nil {
			return "-"
		}
		return human.Number(a.Crowd.Throughput)
	}, func(a *Answer) float64 {
		if a.Crowd == nil {
			return 0
		}
		return a.Crowd.Throughput
	}, func(a *Answer) [2]float64 {
		if a.Crowd == nil {
			return [2]float64{0, math.Inf(1)}
		}
		return a.Crowd.Swing.Visits
	}, higher},
}

// WriteAnswers writes the table, with a row for each topology. The sign ~ marks a number that may differ from the
// best one only by noise.
func WriteAnswers(w io.Writer, all []Answer) error {
	p := &human.Printer{W: w}
	names, many := map[string]int{}, false
	for i := range all {
		names[all[i].Run.Topology]++
		many = many || names[all[i].Run.Topology] > 1
	}
	name, width := func(a *Answer) string { return a.Run.Topology }, 9
	if many {
		name, width = func(a *Answer) string { return a.Run.Combination() }, 20
	}
	line := func(first string, cell func(*answerColumn) string) {
		text := fmt.Sprintf("%-*s ", width, first)
		for i := range answerColumns {
			text = beside(text, fmt.Sprintf(answerColumns[i].layout, cell(&answerColumns[i])))
		}
		p.Line("%s", text)
	}
	line("", func(c *answerColumn) string { return c.over })
	line("topology", func(c *answerColumn) string { return c.head })
	var apart, same []string
	for i := range answerColumns {
		if c := &answerColumns[i]; c.spread != nil && c.tells(all) {
			apart = append(apart, c.name)
		} else if c.spread != nil {
			same = append(same, c.name)
		}
	}
	for i := range all {
		line(name(&all[i]), func(c *answerColumn) string { return c.cell(all, i) })
	}
	if len(all) > 1 && len(same) > 0 {
		p.Wrapped("", 2, "~ is within the noise of the best: one run's seconds differ by as much. "+
			whatTells(apart, same))
	}
	if slices.ContainsFunc(all, func(a Answer) bool { return a.Run.Generator.disturbs() }) {
		p.Wrapped("", 2, "The machine was not quiet, see GENERATOR: do not quote these latencies.")
	}
	return p.Err
}

// disturbs reports whether the machine was so busy that latencies say little about the lock.
func (g *Generator) disturbs() bool { return g.State == Saturated || g.State == Disturbed }

func whatTells(apart, same []string) string {
	if len(apart) == 0 {
		return "No measured column tells the topologies apart: go by the others."
	}
	return "What tells the topologies apart is " + human.List(apart) + ", not " + human.List(same) + "."
}

// best returns the index of the row with the best number in this column.
func (c *answerColumn) best(all []Answer) (best int) {
	point := func(i int) [2]float64 { n := c.number(&all[i]); return [2]float64{n, n} }
	for i := range all {
		if c.better(point(i), point(best)) {
			best = i
		}
	}
	return best
}

// noise reports whether the number in row i may be as good as the best one: the noise ranges of both overlap.
func (c *answerColumn) noise(all []Answer, i int) bool {
	best := c.best(all)
	return i != best && !c.better(c.spread(&all[best]), c.spread(&all[i]))
}

// tells reports whether some number in this column is worse than the best one by more than noise.
func (c *answerColumn) tells(all []Answer) bool {
	for i := range all {
		if i != c.best(all) && !c.noise(all, i) {
			return true
		}
	}
	return false
}

func (c *answerColumn) cell(all []Answer, i int) string {
	text := c.text(&all[i])
	if c.spread != nil && text != "-" && c.noise(all, i) {
		return "~" + text
	}
	return text
}
