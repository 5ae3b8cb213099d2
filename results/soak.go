package results

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// Soak summarizes any number of rounds in constant memory.
type Soak struct {
	Took         int64 `json:"took_ns"`
	Rounds       int   `json:"rounds"`
	Passed       int   `json:"passed"`
	Failed       int   `json:"failed"`
	Inconclusive int   `json:"inconclusive"`
	Holds        int64 `json:"holds"`
	HandOffs     int64 `json:"hand_offs"`
	Kept         int64 `json:"kept_bytes"` // size of the histories of rounds that did not pass
	// Standing has one judgement for each combination of topology, lock and scenario. It is the first that failed.
	// If none failed it is the first that passed, and otherwise the last one.
	Standing []Judgement `json:"standing"`
}

func (s *Soak) Take(j Judgement) checker.Status {
	status, _ := j.Status()
	s.Rounds++
	switch status {
	case checker.Fail:
		s.Failed++
	case checker.Pass:
		s.Passed++
	default:
		s.Inconclusive++
	}
	for i := range j.Verdicts {
		if v := &j.Verdicts[i]; v.Checker == checker.Activity.Name {
			s.Holds, s.HandOffs = s.Holds+v.Exposed, s.HandOffs+v.HandOffs
		}
	}
	at := slices.IndexFunc(s.Standing, func(o Judgement) bool {
		return o.Scenario == j.Scenario && o.Topology == j.Topology && o.Lock == j.Lock
	})
	if at < 0 {
		s.Standing = append(s.Standing, j)
		return status
	}
	before, _ := s.Standing[at].Status()
	if before != checker.Fail && (status == checker.Fail || before != checker.Pass) {
		s.Standing[at] = j
	}
	return status
}

func (s *Soak) Text() string {
	return fmt.Sprintf("%s: %d passed, %d FAILED, %d inconclusive; %s holds, %s contended hand-offs",
		human.Quantity(s.Rounds, "round"),
		s.Passed, s.Failed, s.Inconclusive, human.Count(s.Holds), human.Count(s.HandOffs))
}

// HistorySize returns the size in bytes of a saved run's history; 0 = it has no history.
func HistorySize(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, HistoryFile))
	if err != nil {
		return 0
	}
	return info.Size()
}
