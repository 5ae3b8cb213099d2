package dashboard

import (
	"fmt"
	"strings"
	"time"

	"hammerlock/internal/measure"
)

// view is one of the arrangements that number keys choose.
type view int

const (
	allView view = iota + 1
	holdersView
	latencyView
	fairnessView
	nodesView
	eventsView
)

// state is what the person at the keys has chosen. Only the drawing goroutine touches it.
type state struct {
	view    view
	frozen  bool
	filter  string
	event   int // from the newest, counted from 1; 0 = none is chosen
	node    int
	message string
	told    time.Time // when the message came
	replay  bool
}

// messageFor is how long a message stands.
const messageFor = 5 * time.Second

func (st *state) say(now time.Time, format string, args ...any) {
	st.message, st.told = fmt.Sprintf(format, args...), now
}

func (st *state) passes(text string) bool {
	return st.filter == "" || strings.Contains(strings.ToLower(text), strings.ToLower(st.filter))
}

// events, lanes and nodes are those that pass the filter. A filter that no lane or node passes is not meant for them.
func (st *state) events(s *measure.Snapshot) (list []measure.Event) {
	for _, e := range s.Events {
		if st.passes(string(e.Kind) + " " + e.Text) {
			list = append(list, e)
		}
	}
	return list
}

func (st *state) lanes(s *measure.Snapshot) []measure.Strip {
	var list []measure.Strip
	for _, l := range s.Lanes {
		if st.passes(fmt.Sprintf("w%02d", l.Worker)) {
			list = append(list, l)
		}
	}
	if list == nil {
		return s.Lanes
	}
	return list
}

func (st *state) nodes(s *measure.Snapshot) []measure.NodeState {
	var list []measure.NodeState
	for _, n := range s.Nodes {
		if st.passes(n.Name + " " + n.Role) {
			list = append(list, n)
		}
	}
	if list == nil {
		return s.Nodes
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
