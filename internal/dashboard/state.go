package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/measure"
)

// view is a selection of panels. The user chooses a view by a number key.
type view int

const (
	boardView view = iota // the runs of a job with parallel runs; for other jobs the same as allView
	allView
	holdersView
	latencyView
	fairnessView
	nodesView
	eventsView
)

// state is what the user has chosen by keys. Only the drawing goroutine uses it.
type state struct {
	view    view
	frozen  bool
	filter  string
	event   int // 1 = the newest event, 2 = the one before it, and so on; 0 = none chosen
	node    int
	span    time.Duration // length of the time that lanes show; 0 = the default
	until   time.Duration // time at the end of the lanes; 0 = now
	top     int           // first lane or worker that is shown
	waits   bool          // the heat map shows waits instead of response times
	message string
	said    time.Time // time at which the message appeared
	replay  bool
}

const messageFor = 5 * time.Second

func (st *state) say(now time.Time, format string, args ...any) {
	st.message, st.said = fmt.Sprintf(format, args...), now
}

func (st *state) passes(text string) bool {
	return st.filter == "" || strings.Contains(strings.ToLower(text), strings.ToLower(st.filter))
}

// events returns the events that match the filter. The methods lanes and nodes do the same, but return all if none
// matches.
func (st *state) events(s *measure.Snapshot) []measure.Event {
	return slices.DeleteFunc(slices.Clone(s.Events), func(e measure.Event) bool {
		return !st.passes(string(e.Kind) + " " + e.Text)
	})
}

func (st *state) lanes(s *measure.Snapshot) []measure.Strip {
	return matching(slices.Clone(s.Lanes), func(l measure.Strip) bool {
		return st.passes(fmt.Sprintf("w%02d", l.Worker))
	})
}

func (st *state) nodes(s *measure.Snapshot) []measure.NodeState {
	return matching(s.Nodes, func(n measure.NodeState) bool { return st.passes(n.Name + " " + n.Role) })
}

// matching returns the elements that match, or all elements if none does.
func matching[T any](all []T, match func(T) bool) []T {
	list := slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !match(x) })
	if len(list) == 0 {
		return all
	}
	return list
}

// chosen returns the index of the chosen one of n events; -1 = none is chosen.
func (st *state) chosen(n int) int {
	if st.event == 0 {
		return -1
	}
	return max(n-st.event, 0)
}
