package results

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

func TestWhatIsKnownOfClocksIsSaid(t *testing.T) {
	near := Agent{Name: "near", Machine: 1, Doubt: int64(20 * time.Microsecond), Exchanges: 7}
	far := Agent{Name: "far", Machine: 2, Doubt: int64(40 * time.Microsecond), Exchanges: 8}
	stepped := Agent{Name: "stepped", Machine: 3, Doubt: int64(history.MaxDoubt)}
	for want, agents := range map[string][]Agent{
		"clocks of near and far agree within 60.0 µs (15 exchanges":       {near, far},
		"the clock of stepped contradicts itself, nothing is known of it": {near, far, stepped},
		"clocks agree within 0 ns (one machine)":                          nil,
	} {
		f := Fleet{Agents: agents}
		if got := f.Text(); !strings.Contains(got, want) &&
			!strings.Contains(strings.ReplaceAll(got, "\u00a0", " "), want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
