package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/measure"
)

// view is one of the arrangements that number keys choose.
type view int

const (
	boardView view = iota // the same as allView, if there is no board
	allView
	holdersView
	latencyView
	fairnessView
	nodesView
	eventsView
)

// state is what was chosen by keys. Only the drawing goroutine uses it.
type state struct {
	view    view
	frozen  bool
	filter  string
	event   int // from the newest, counted from 1; 0 = none is chosen
	node    int
	span    time.Duration // how much time lanes show; 0 = as much as usual
	until   time.Duration // the lanes stand still and end then; 0 = they end now
	top     int           // the first lane or worker that is shown
	waits   bool          // the heat strip is of the waits, not of the responses
	message string
	said    time.Time // when the message came
	replay  bool
}

const messageFor = 5 * time.Second

func (st *state) say(now time.Time, format string, args ...any) {
	st.message, st.said = fmt.Sprintf(format, args...), now
}

func (st *state) passes(text string) bool {
	return st.filter == "" || strings.Contains(strings.ToLower(text), strings.ToLower(st.filter))
}

// events, lanes and nodes are those that match the filter. If no lane or node matches, all of them are shown.
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

// matching are the elements that match, or all if none does.
func matching[T any](all []T, match func(T) bool) []T {
	list := slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !match(x) })
	if len(list) == 0 {
		return all
	}
	return list
}

// chosen is the place of the chosen event among n, -1 if none is.
func (st *state) chosen(n int) int {
	if st.event == 0 {
		return -1
	}
	return max(n-st.event, 0)
}
