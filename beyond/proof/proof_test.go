package proof

import (
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// TestWhatIsAskedInVainIsRecorded: if a renewal is unanswered when the hold is lost, it is recorded with an unknown
// outcome. An answered renewal is not.
func TestWhatIsAskedInVainIsRecorded(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*Lease, time.Time)
		lost bool // at the end
		want []history.Outcome
	}{
		"never asked": {func(*Lease, time.Time) {}, true, nil},
		"asked": {func(l *Lease, _ time.Time) {
			l.Ask()
			l.Ask()
		}, true, []history.Outcome{history.Unknown}},
		"asked, answered": {func(l *Lease, ends time.Time) {
			l.Ask()
			l.Renew(ends, ends)
		}, true, []history.Outcome{history.OK}},
		"asked, given back": {func(l *Lease, _ time.Time) { l.Ask(); l.Finish() }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := history.NewClock(0)
			l := Lease{Lane: history.NewLane(clock, 0, 0, 16, make(chan struct{}, 1))}
			ends := time.Now().Add(500 * time.Millisecond)
			l.Renew(ends, ends)
			h := NewHold("token")
			l.Begin(h, true)
			tt.do(&l, ends)
			asked := clock.Now()
			if tt.lost {
				<-h.Lost
			}
			var got []history.Outcome
			history.NewMerge(clock, []*history.Lane{l.Lane}).Flush(func(op *history.Op) {
				got = append(got, op.Outcome)
				if op.Kind != history.Extend || op.Token != history.Hash("token") || op.Outcome == history.Unknown &&
					(op.Call > asked || op.Return < clock.At(ends)) {
					t.Errorf("%+v", op)
				}
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
