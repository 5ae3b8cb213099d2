package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/model"
)

// compared has the number of histories for each pair of answers: that of the checkers and that of the model.
type compared struct {
	rows     map[[2]string]int
	examples map[[2]string]string
	accused  int // number of right locks whose stories contain a deviation
	err      error
}

// ofBeliefs are the causes that no story of the servers contains: the holder or the counter is to blame.
var ofBeliefs = []string{history.OverClaim, history.Overrun, history.RenewalFailure, history.Exclusion}

// verdicts sums up the verdicts of those checkers whose failures the model can explain.
func verdicts(h *history.History) (string, error) {
	list, err := checker.JudgeHistory(h)
	var fails []string
	undecided := false
	for _, v := range list {
		switch v.Checker {
		case "exclusion", "release", "lease-validity":
		default:
			continue
		}
		undecided = undecided || v.Misses["unplanned"] > 0
		for cause := range v.Causes {
			if v.Status == checker.Fail && !slices.Contains(ofBeliefs, cause) {
				fails = append(fails, cause)
			}
		}
	}
	slices.Sort(fails)
	switch {
	case len(fails) > 0:
		return "FAIL " + strings.Join(slices.Compact(fails), ", "), err
	case undecided:
		return "undecided", err
	}
	return "no fault", err
}

// explained sums up the stories that the model finds for the pages.
func explained(h *history.History) (string, error) {
	list, err := checker.Stories(h)
	var causes []string
	var status model.Status
	missing, faults, accidents := "", 0, 0
	for _, s := range list {
		if status = max(status, s.Status); s.Missing != "" {
			missing = s.Missing
		}
		for _, x := range s.Steps {
			switch lost := x.Event == model.Forgotten || x.Event == model.Restored; {
			case x.Deviation != nil:
				causes = append(causes, x.Deviation.Name)
			case lost && x.Planned:
				faults++
			case lost:
				accidents++
			}
		}
	}
	slices.Sort(causes)
	switch {
	case len(causes) > 0:
		return "FAIL " + strings.Join(slices.Compact(causes), ", "), err
	case status == model.NotModelled:
		return "not modelled: " + missing, err
	case status == model.Unknown:
		return "cause not shown", err
	case status == model.Unexplained:
		return "FAIL cause not shown", err
	case faults > 0:
		return "FAIL service-loss", err
	case accidents > 0:
		return "undecided", err
	}
	return "no fault", err
}

func (c *compared) add(name string, h *history.History) {
	old, err := verdicts(h)
	if err != nil {
		c.err = cmp.Or(c.err, fmt.Errorf("%s: %w", name, err))
	}
	story, err := explained(h)
	if err != nil {
		c.err = cmp.Or(c.err, fmt.Errorf("%s: %w", name, err))
	}
	row := [2]string{old, story}
	c.rows[row]++
	if _, ok := c.examples[row]; !ok {
		c.examples[row] = name
	}
}

// compare prints how often each pair of answers occurs, for files or for simulated histories.
func (j *job) compare(out io.Writer, files []string) error {
	c := &compared{rows: map[[2]string]int{}, examples: map[[2]string]string{}}
	if len(files) > 0 {
		for _, file := range files {
			h, err := history.Open(file)
			if err != nil {
				return err
			}
			c.add(filepath.Base(file), h)
		}
	} else {
		j.ask = func(*history.History) answered { return answered{} }
		j.all(func(r *result) {
			wrong := r.pair.wrong.String()
			if r.pair.wrong == none {
				wrong = "right"
			}
			c.add(fmt.Sprintf("%s/%s seed %d", r.pair.kind.name, wrong, r.seed), r.h)
			story, _ := explained(r.h)
			if wrong == "right" && strings.HasPrefix(story, "FAIL") && story != "FAIL service-loss" {
				c.accused++
				fmt.Fprintf(out, "ACCUSED %s seed %d: %s\n", r.pair.kind.name, r.seed, story)
			}
		})
	}
	for _, row := range slices.SortedFunc(maps.Keys(c.rows), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(c.rows[b], c.rows[a]), cmp.Compare(a[0]+a[1], b[0]+b[1]))
	}) {
		mark := " "
		if row[0] != row[1] && !strings.HasPrefix(row[1], "not modelled") {
			mark = "*"
		}
		fmt.Fprintf(out, "%s %6d | %-50s | %-50s | %s\n", mark, c.rows[row], row[0], row[1], c.examples[row])
	}
	fmt.Fprintf(out, "%d right locks accused\n", c.accused)
	return c.err
}
