package history

import "testing"

const heldID = ID(1<<40 | 1)

var heldGrant = Op{ID: heldID, Kind: Acquire, Hold: heldID, Key: 3, Call: 9, Return: 10, Until: 100, Token: 7}

// heldStep is an operation of a worker and the expected change.
type heldStep struct {
	op   Op
	want Change
}

var holdings = map[string]struct {
	steps []heldStep
	after Holding
}{
	"refused, granted, given back": {[]heldStep{
		{Op{ID: 1, Kind: Acquire, Outcome: Failed, Reason: Busy, Return: 5}, Unchanged},
		{heldGrant, Granted},
		{Op{ID: heldID + 1, Kind: Release, Hold: heldID, Return: 30}, GivenBack},
		{Op{ID: heldID + 2, Kind: Release, Hold: heldID, Return: 40}, Unchanged}, // a second release
	}, Holding{Key: 3, From: 10, Until: 100, Lost: Forever}},
	"no end is told": {[]heldStep{
		{Op{ID: heldID, Kind: Acquire, Return: 10}, Granted},
	}, Holding{ID: heldID, From: 10, Until: Forever, Lost: Forever}},
	"extended by a watchdog, and by another's": {[]heldStep{
		{heldGrant, Granted},
		{Op{Kind: Extend, Token: 7, Until: 200, Return: 50}, Prolonged},
		{Op{Kind: Extend, Token: 8, Until: 300, Return: 60}, Unchanged},
		{Op{Kind: Extend, Hold: heldID, Token: 7, Return: 70, Until: 400, Reason: Timeout}, Unchanged},
	}, Holding{ID: heldID, Key: 3, From: 10, Until: 200, Lost: Forever}},
	"re-entered": {[]heldStep{
		{heldGrant, Granted},
		{Op{ID: heldID + 1, Kind: Acquire, Hold: heldID, Until: 150, Return: 20, Value: 2}, Prolonged},
		{Op{Kind: Release, Hold: heldID, Value: 1, Return: 30}, Unchanged},
		{Op{Kind: Release, Hold: heldID, Return: 40}, GivenBack},
	}, Holding{Key: 3, From: 10, Until: 150, Lost: Forever}},
	"told by an extension, and by the lock": {[]heldStep{
		{heldGrant, Granted},
		{Op{Kind: Extend, Hold: heldID, Return: 50, Outcome: Failed, Reason: Lost}, Told},
		{Op{Kind: Lose, Hold: heldID, Return: 60}, Told},
		{Op{Kind: End, Return: 70}, Left},
		{Op{Kind: End, Return: 80}, Unchanged},
	}, Holding{Key: 3, From: 10, Until: 100, Lost: 50}},
	"died": {[]heldStep{{heldGrant, Granted}, {Op{Kind: Crash, Call: 20}, Died}},
		Holding{Key: 3, From: 10, Until: 100, Lost: Forever}},
	"what it cleans up is no hold": {[]heldStep{
		{Op{ID: heldID, Kind: Acquire, Hold: heldID, Reason: Timeout, Return: 10}, Unchanged},
		{Op{Kind: Release, Hold: heldID, Return: 20}, Unchanged},
	}, Holding{}},
}

// TestHoldingFollowsAWorker checks the change by each operation of a worker, and the hold after them.
func TestHoldingFollowsAWorker(t *testing.T) {
	for name, tt := range holdings {
		var h Holding
		for i := range tt.steps {
			op := &tt.steps[i].op
			if op.Outcome == Unknown && op.Reason == None {
				op.Outcome = OK
			}
			if got := h.Observe(op); got != tt.steps[i].want {
				t.Errorf("%s: step %d: got change %d, want %d", name, i, got, tt.steps[i].want)
			}
		}
		if h.token = 0; h != tt.after {
			t.Errorf("%s: got %+v, want %+v", name, h, tt.after)
		}
		if h.Believed() != min(tt.after.Until, tt.after.Lost) {
			t.Errorf("%s: believed until %v", name, h.Believed())
		}
	}
}
