package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/measure"
)

// view is one of the arrangements that number keys select.
type view int

const (
	boardView view = iota // as allView if there is no board
	allView
	holdersView
	latencyView
	fairnessView
	nodesView
	eventsView
)

// state has what was selected by keys. Only the drawing goroutine uses it.
type state struct {
	view    view
	frozen  bool
	filter  string
	event   int // counted from the newest, which is 1; 0 = none is chosen
	node    int
	span    time.Duration // how much time lanes show; 0 = the default
	until   time.Duration // the lanes end at this time and do not move; 0 = they end now
	top     int           // first lane or worker that is shown
	waits   bool          // the heat map shows waits in place of response times
	message string
	said    time.Time // when the message appeared
	replay  bool
}

const messageFor = 5 * time.Second

func (st *state) say(now time.Time, format string, args ...any) {
	st.message, st.said = fmt.Sprintf(format, args...), now
}

func (st *state) passes(text string) bool {
	return st.filter == "" || strings.Contains(strings.ToLower(text), strings.ToLower(st.filter))
}

// events, lanes and nodes return those that match the filter. If no lane or node matches, they return all.
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

// matching returns the elements that match, or all if none does.
func matching[T any](all []T, match func(T) bool) []T {
	list := slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !match(x) })
	if len(list) == 0 {
		return all
	}
	return list
}

// chosen is the index of the chosen event among n; -1 if none is.
func (st *state) chosen(n int) int {
	if st.event == 0 {
		return -1
	}
	return max(n-st.event, 0)
}
