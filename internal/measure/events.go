package measure

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
)

const (
	keptEvents = 200
	oneEvent   = 500 * time.Millisecond // a repetition within this time only increases a count
)

// events has the latest events of a run, which a dashboard lists.
type events struct {
	list    []Event
	dropped int
	// number of a fault that is not healed -> index of its event, which counts from the start of the run
	open map[int64]int

	injected int64 // number of injected faults
}

// add adds an event, and returns its index, which counts from the start of the run. If the last event is of the same
// kind and recent, some kinds of event only increase its count.
func (v *events) add(e Event) int {
	e.Count = 1
	again := e.Kind == LeaseLostEvent || e.Kind == CrashEvent || e.Kind == ViolationEvent
	if n := len(v.list); n > 0 && again {
		if last := &v.list[n-1]; last.Kind == e.Kind && e.At-last.At < oneEvent {
			last.Count++
			return v.dropped + n - 1
		}
	}
	if len(v.list) == keptEvents {
		v.list = append(v.list[:0], v.list[1:]...)
		v.dropped++
	}
	v.list = append(v.list, e)
	return v.dropped + len(v.list) - 1
}

// begun lists the faults that are being injected, but are not yet in force.
type begun struct {
	mu   sync.Mutex
	list []beginning
}

type beginning struct {
	number int64
	event  Event
}

// The method end removes a fault from the list, because it is now in force.
func (b *begun) end(number int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = slices.DeleteFunc(b.list, func(x beginning) bool { return x.number == number })
}

func (b *begun) events() (list []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.list {
		list = append(list, x.event)
	}
	return list
}

func (v *events) fault(op *history.Op, what string) {
	e := Event{Kind: FaultEvent, At: op.Call, Text: what,
		Detail: []string{"began " + at(op.Call) + ", was in force " + at(op.Return)}}
	if op.Outcome == history.Failed {
		e.Text, e.To = "failed: "+what, op.Return
		v.add(e)
		return
	}
	v.open[op.Value] = v.add(e)
	v.injected++
}

func (v *events) heal(op *history.Op) {
	n, ok := v.open[op.Value]
	delete(v.open, op.Value)
	if n -= v.dropped; ok && n >= 0 {
		v.list[n].To = op.Return
		v.list[n].Detail = append(v.list[n].Detail, "healed "+at(op.Return))
	}
}

func (v *events) faultIn(from, to time.Duration) bool {
	return slices.ContainsFunc(v.list, func(e Event) bool {
		return e.Kind == FaultEvent && e.At < to && (e.To == 0 || e.To >= from)
	})
}

func at(t time.Duration) string { return fmt.Sprintf("at %.3f s", t.Seconds()) }
