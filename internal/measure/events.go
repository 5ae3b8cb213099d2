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
	oneEvent   = 500 * time.Millisecond // the same event within this time is counted, not listed again
)

// events are the latest events of a run.
type events struct {
	list    []Event
	dropped int
	// number of a fault that is not healed -> index of its event, counted from the first event ever
	open map[int64]int

	injected int64 // faults
}

// add adds an event and returns its index. If it is the same as the last one, it only increments that one's count.
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

// begun lists the faults that are being injected at the moment.
type begun struct {
	mu   sync.Mutex
	list []beginning
}

type beginning struct {
	number int64
	event  Event
}

// end removes a fault from the list of those being injected, because it is in force now.
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

// faultIn tells whether a fault was in force at any time between from and to.
func (v *events) faultIn(from, to time.Duration) bool {
	return slices.ContainsFunc(v.list, func(e Event) bool {
		return e.Kind == FaultEvent && e.At < to && (e.To == 0 || e.To >= from)
	})
}

func at(t time.Duration) string { return fmt.Sprintf("at %.3f s", t.Seconds()) }
