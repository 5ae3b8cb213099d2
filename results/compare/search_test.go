package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// edge is an objective that holds below a value, with noise around it.
func edge(at, noise float64, seed uint64) func(float64) (GateResult, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(x float64) (GateResult, error) {
		if x*math.Exp(random.NormFloat64()*noise) < at {
			return GateResult{Status: GatePass}, nil
		}
		return GateResult{Status: GateFail}, nil
	}
}

// TestSearchFindsTheEdge searches from below and above, with and without noise.
func TestSearchFindsTheEdge(t *testing.T) {
	for _, at := range []float64{30, 99, 101, 777, 123_456} {
		for _, noise := range []float64{0, 0.02} {
			missed := 0
			for seed := range uint64(100) {
				f, err := Search{From: 100, Most: 1e6, Step: 0.05, Try: edge(at, noise, seed)}.Run()
				if err != nil {
					t.Fatal(err)
				}
				if len(f.Probes) > 60 {
					t.Errorf("%d looks for %g", len(f.Probes), at)
				}
				if f.Status != GatePass || *f.Holds > at*(1+3*noise) || *f.Breaks < at*(1-3*noise) ||
					*f.Breaks / *f.Holds > 1.0501 {
					missed++
				}
			}
			if noise == 0 && missed > 0 || missed > 10 {
				t.Errorf("the edge at %g with noise %g was missed %d times of 100", at, noise, missed)
			}
		}
	}
}

func TestSearchOfWholeNumbers(t *testing.T) {
	for at := 2.0; at < 70; at++ {
		f, err := Search{From: 8, Most: 4096, Step: 0.05, Whole: true, Try: edge(at, 0, 1)}.Run()
		if err != nil || f.Status != GatePass || *f.Holds >= at || *f.Breaks < at || *f.Holds != math.Floor(*f.Holds) {
			t.Fatalf("%g: %+v, %v", at, f, err)
		}
	}
}

// TestSearchTellsWhatContradictsIt: most runs confirm the result, but some contradict it, and the text must say so.
// The setting is a number of workers, so its values are whole numbers.
func TestSearchTellsWhatContradictsIt(t *testing.T) {
	tried := map[float64]int{}
	f, err := Search{From: 8, Most: 4096, Step: 0.05, Whole: true, Try: func(at float64) (GateResult, error) {
		tried[at]++
		if at < 11 && !(at == 10 && tried[at] == 2) {
			return GateResult{Status: GatePass}, nil
		}
		return GateResult{Status: GateFail}, nil
	}}.Run()
	var text strings.Builder
	if err = errors.Join(err, f.WriteText(&text)); err != nil || f.Status != GatePass {
		t.Fatal(f, err)
	}
	for _, want := range []string{"          10  fail\n",
		"holds at 10, breaks at 11: confirmed from both sides by most of the ",
		"it failed in 1 at 10 or less, and held in 0 at 11 or more"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no word of %q in:\n%s", want, text.String())
		}
	}
}

func TestSearchKnowsWhatItDoesNotKnow(t *testing.T) {
	say := func(s GateStatus) func(float64) (GateResult, error) {
		return func(float64) (GateResult, error) { return GateResult{Status: s}, nil }
	}
	saturatedFrom := func(x float64) (GateResult, error) {
		if x > 500 {
			return GateResult{Status: GateInconclusive, Summary: "the generator was saturated"}, nil
		}
		return GateResult{Status: GatePass}, nil
	}
	for name, c := range map[string]struct {
		try           func(float64) (GateResult, error)
		status        GateStatus
		holds, breaks bool
	}{
		"holds everywhere":    {say(GatePass), GateInconclusive, true, false},
		"holds nowhere":       {say(GateFail), GateFail, false, true},
		"says nothing":        {say(GateUnderpowered), GateUnderpowered, false, false},
		"generator saturated": {saturatedFrom, GateInconclusive, true, false},
	} {
		f, err := Search{From: 100, Most: 1e6, Step: 0.05, Try: c.try}.Run()
		if err != nil || f.Status != c.status || (f.Holds != nil) != c.holds || (f.Breaks != nil) != c.breaks {
			t.Errorf("%s: got %+v, %v", name, f, err)
		}
	}
	broken := errors.New("no server")
	if _, err := (Search{From: 1, Most: 2, Try: func(float64) (GateResult, error) {
		return GateResult{},
			broken
	}}).Run(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
