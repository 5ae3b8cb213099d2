package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Combination names the topology, the lock and the scenario of a run.
func (r *Run) Combination() string {
	return strings.TrimSpace(r.Topology + " " + r.Lock + " " + r.Scenario)
}

// Workload describes the load of a run. Runs with the same text can be compared.
func (r *Run) Workload() string {
	if text := cmp.Or(r.Wire, r.visitsToService()); text != "" {
		return text
	}
	hold := "hold " + human.Duration(time.Duration(r.Hold))
	if r.Term > 0 {
		hold += ", again and again for " + human.Duration(time.Duration(r.Term))
	}
	return strings.Join([]string{
		human.Quantity(r.Workers, "worker"), human.Quantity(r.Keys, "page"), r.Loop(),
		"lease " + human.Duration(time.Duration(r.TTL)), hold, "backoff " + human.Duration(time.Duration(r.Retry)),
		human.Duration(time.Duration(r.Duration)) + " each", r.Servers(),
	}, " · ")
}

// Servers names the server program, and the settings on which the durability of its data depends.
func (r *Run) Servers() string {
	text := r.Settings["server"]
	if r.Settings["appendonly"] == "yes" {
		text += ", aof " + r.Settings["appendfsync"]
	}
	if n := r.Settings["min-replicas-to-write"]; n != "" && n != "0" {
		text += ", min-replicas " + n
	}
	return text
}

// JainText formats Jain's index; "Jain -" = no visit ended during the measurement.
func (f *Fairness) JainText() string {
	if f.Jain == 0 {
		return "Jain -"
	}
	return fmt.Sprintf("Jain %.2f", f.Jain)
}

// ThroughputText returns two texts: the counted visits per second, and how many of them ended during the
// measurement.
func (r *Run) ThroughputText() (rate, count string) {
	length := time.Duration(r.Measured)
	return human.Number(r.Throughput), fmt.Sprintf("%s ended in %s",
		human.Quantity(int64(math.Round(r.Throughput*length.Seconds())), "visit"), human.Duration(length))
}

// FairnessText describes how visits and waits are distributed among the workers.
func (r *Run) FairnessText() string {
	f := r.Fairness
	text := fmt.Sprintf("%s over %s; %s; worst w%02d: %s", f.JainText(), human.Quantity(r.Workers, "worker"),
		starving(f.StarvingWorkers), f.Worst.Worker, human.Quantity(f.Worst.Visits, "visit"))
	if r.Unseen() { // a service does not show how long its callers wait for locks
		return text
	}
	text += fmt.Sprintf(", mean wait %s, longest %s", human.Duration(time.Duration(f.Worst.Mean)),
		human.Duration(time.Duration(f.Worst.Longest)))
	if f.IdleShare != nil {
		text += fmt.Sprintf("; lock idle while a worker waited %s of the time", human.Percent(*f.IdleShare))
	}
	return text
}

func starving(workers []int) string {
	if len(workers) == 0 {
		return "none starving"
	}
	const most = 8
	names := human.Names(workers[:min(len(workers), most)], func(w int) string { return fmt.Sprintf("w%02d", w) })
	text := fmt.Sprintf("%d STARVING (%s", len(workers), strings.Join(names, " "))
	if len(workers) > most {
		text += fmt.Sprintf(" and %d more", len(workers)-most)
	}
	return text + ")"
}

// LatencyRows returns a row for each kind of latency: name, count, p50, p90, p99, p99.9, max and mean.
func (r *Run) LatencyRows() (rows [][]string) {
	row := func(name string, p *Percentiles) []string {
		return []string{name, human.Count(p.Count), p.Text(p.P50), p.Text(p.P90), p.Text(p.P99), p.Text(p.P999),
			p.Text(&p.Max), p.Text(&p.Mean)}
	}
	for _, d := range distributions {
		name := d.row
		if r.Unseen() {
			name = d.visits
		}
		if name != "" {
			rows = append(rows, row(name, d.of(r)))
		}
		if name != "hand-off" {
			continue
		}
		var split [][]string // one row for each kind of wake-up
		for i := range r.Waiting.Woken {
			if w := &r.Waiting.Woken[i]; w.Handoff.Count > 0 {
				split = append(split, row("hand-off, woken by "+w.By, &w.Handoff))
			}
		}
		if len(split) > 1 {
			rows = append(rows, split...)
		}
	}
	return rows
}

// CensoredText explains the rows "with unfinished": it counts the waits and visits that only these rows have. It is
// empty if there are none.
func (r *Run) CensoredText() string {
	var parts []string
	add := func(n int64, one, what string) {
		if n > 0 {
			parts = append(parts, human.Quantity(n, one)+what)
		}
	}
	add(r.Waiting.Censored, "wait", " ended without a grant or outlasted the measurement")
	add(r.Waiting.Response.Censored, "visit", " did not go well or outlasted the measurement")
	if len(parts) > 0 {
		parts = append(parts, "they count with what was seen of them")
	}
	add(r.Waiting.Unfinished.Entered, "wait", " in acquire with unfinished began in the warm-up")
	return strings.Join(parts, "; ")
}

// WokenText says how many grants followed each kind of wake-up, and after how many tries. It is empty if this is
// unknown.
func (r *Run) WokenText() string {
	var sum int64
	for _, w := range r.Waiting.Woken {
		sum += w.Grants
	}
	var parts []string
	for _, w := range r.Waiting.Woken {
		if w.Grants == 0 {
			parts = append(parts, w.By+" never granted, tried "+human.Count(w.Tries)+" times")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s of the grants (%s tries each)", w.By,
			human.Percent(float64(w.Grants)/float64(sum)),
			human.Number(float64(w.Tries)/float64(w.Grants))))
	}
	return strings.Join(parts, "; ")
}

func (r *Run) VisitsText() string {
	v := r.Visits
	text := fmt.Sprintf("%s begun, %s counted, %s timed out, %s failed, %s unknown",
		human.Count(v.Begun), human.Count(v.Done), human.Count(v.Timeout), human.Count(v.Failed),
		human.Count(v.Unknown))
	if r.Rate > 0 {
		a := r.Arrivals
		text += fmt.Sprintf("; with the warm-up %s due = %s begun + %s skipped + %s unfinished",
			human.Count(a.Due), human.Count(a.Begun), human.Count(a.Skipped), human.Count(a.Unfinished))
	}
	return text
}

// Texts formats the costs of a visit; "-" = not measured.
func (c *Cost) Texts() (trips, commands, cpu string) {
	write := func(x *float64, number func(float64) string) string {
		if x == nil {
			return "-"
		}
		return number(*x)
	}
	return write(c.RoundTrips, human.Number), write(c.Commands, human.Number),
		write(c.ServerCPU, func(ns float64) string { return human.Duration(time.Duration(ns)) })
}

// fencedText counts the stores that the counter refused because of an old fencing token. Such a refusal is no error.
// The text is empty if there was none.
func (r *Run) fencedText() string {
	if r.Views.Fenced == 0 {
		return ""
	}
	return human.Quantity(r.Views.Fenced, "stale store") + " refused by the counter"
}

func (r *Run) errorsText() string {
	var all []string
	for what, n := range r.Errors {
		if r.Unseen() && strings.HasPrefix(what, "end ") {
			continue // a visit to a service is a single request, and the request's error is counted already
		}
		text := human.Count(n) + " " + what
		if said := r.Said[what]; said != "" {
			text += " (" + said + ")"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
