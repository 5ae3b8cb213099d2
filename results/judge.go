package results

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// Judge judges the saved run in a directory by its history, and writes the proofs of the verdicts. Without a history
// it judges the totals of the counters only. An exploration runs many schedules but saves the history of only one.
// So its verdicts from the record stay, even if that history does not show them.
func (r *Run) Judge(dir string) (all []checker.Verdict, err error) {
	file := filepath.Join(dir, HistoryFile)
	switch _, missing := os.Stat(file); {
	case r.Recorded || missing == nil:
	case r.Explored:
		return r.Verdicts, nil
	default:
		v := &r.Views
		sums := checker.Tally{Acknowledged: v.Acknowledged, Unknown: v.Unknown, Final: v.Final, Unread: v.Unread,
			Doubt: v.Doubt, Excused: v.Excused, Missing: v.Missing}
		measured := &history.Measured{Driver: r.Driver.Measured()}
		return checker.WithMeasured([]checker.Verdict{r.counted(sums.Verdict())}, measured, &history.Header{},
			time.Duration(r.TTL)), nil
	}
	if all, r.Certified, err = judgeFile(file); !r.Explored {
		return all, err
	}
	for i := range r.Verdicts {
		at := slices.IndexFunc(all, func(v checker.Verdict) bool { return v.Checker == r.Verdicts[i].Checker })
		switch {
		case at < 0:
			all = append(all, r.Verdicts[i])
		case all[at].Status != r.Verdicts[i].Status:
			all[at] = r.Verdicts[i]
		}
	}
	return all, err
}

// counted turns a pass into inconclusive if no visit was counted during the measurement. All page views are then
// from the warm-up.
func (r *Run) counted(v checker.Verdict) checker.Verdict {
	if v.Status != checker.Pass || r.Visits.Done > 0 {
		return v
	}
	v.Status, v.Summary = checker.Inconclusive, "no visit was counted in the measurement; in the warm-up, "+v.Summary
	if text := r.errorsText(); text != "" {
		v.Summary += "; the calls were answered: " + text
	}
	return v
}

// Standing returns the judgements without those that were inconclusive and were replaced by a repetition.
func Standing(all []Judgement) []Judgement {
	return slices.DeleteFunc(slices.Clone(all), func(j Judgement) bool {
		return slices.ContainsFunc(all, func(o Judgement) bool {
			return slices.Contains(o.earlier, filepath.Base(j.Saved))
		})
	})
}

// Measured returns the part of the measurements that judges need; nil if d is nil.
func (d *Driver) Measured() *history.Driver {
	if d == nil {
		return nil
	}
	return &history.Driver{Pings: d.Pings, Median: time.Duration(d.P50), Silent: d.Silent, Text: d.Text(),
		ClockUnread: d.ClockUnread}
}
