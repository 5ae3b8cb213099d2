package main

import (
	"slices"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/model"
)

// TestModelAccusesNoRightLock: no story of a right lock needs a deviation.
func TestModelAccusesNoRightLock(t *testing.T) {
	t.Parallel()
	j := job{n: 2000, seed: 77, wrong: none.String(), ask: silent}
	if testing.Short() {
		j.n = 400
	}
	told := map[string]int{}
	j.all(func(r *result) {
		story, err := explained(r.h)
		if err != nil {
			t.Fatal(err)
		}
		told[story]++
		if accused := strings.HasPrefix(story, "FAIL") && story != "FAIL "+history.ServiceLoss; accused {
			t.Errorf("%s %d: %s", r.pair.kind.name, r.seed, story)
		}
	})
	if told["no fault"] < j.n/3 {
		t.Errorf("few pages are explained: %v", told)
	}
}

// TestModelNamesMistakes plants mistakes that match a deviation of the model. Nearly all histories that need a
// deviation name the right one.
func TestModelNamesMistakes(t *testing.T) {
	t.Parallel()
	for m, want := range map[mistake][]string{
		overwrites:     {history.DoubleGrant},
		checkThenSet:   {history.DoubleGrant},
		plainDelete:    {history.ForeignRelease, history.FalseRelease, history.DoubleRelease},
		liesOnRelease:  {history.FalseRelease, history.DoubleRelease},
		releasesTwice:  {history.DoubleRelease, history.FalseRelease},
		zombieWatchdog: {history.SilentReacquire, history.FalseExtension},
		refusesOwner:   {history.PrematureLoss, history.FalseRefusal},
		busyOwner:      {history.FalseRefusal},
		shortLease:     {history.PrematureLoss, history.DoubleGrant}, // looks like a double grant
	} {
		named, failed := 0, 0
		kind := &kinds[0]
		if m == zombieWatchdog {
			kind = &kinds[1]
		}
		for seed := range uint64(24) {
			story, err := explained(simulate(pair{kind, m}, seed+1).history())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(story, "FAIL") || story == "FAIL "+history.ServiceLoss {
				continue
			}
			failed++
			for _, cause := range want {
				if strings.Contains(story, cause) {
					named++
					break
				}
			}
		}
		if failed < 2 || 10*named < 9*failed {
			t.Errorf("%s: %d of %d stories name %v", m, named, failed, want)
		}
	}
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
