package dashboard

import (
	"cmp"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// key handles a key; the dashboard draws afterwards. It returns nil, or the key for a pop-up to handle.
func (d *Dashboard) key(e *tcell.EventKey) *tcell.EventKey {
	switch e.Key() {
	case tick:
		if d.isClosing() {
			d.app.Stop()
		}
		d.refresh()
		return nil
	case tcell.KeyCtrlC:
		d.quit()
		return nil
	case tcell.KeyCtrlZ:
		d.suspend()
		return nil
	case tcell.KeyCtrlL:
		d.screen.Sync()
		return nil
	case tcell.KeyEscape:
		if d.popup != "" {
			d.closePopup()
		} else {
			d.state.filter, d.state.event, d.state.until = "", 0, 0
		}
		return nil
	}
	if d.popup != "" {
		return e
	}
	if e.Key() == tcell.KeyRune {
		d.letter(e.Rune())
	} else {
		d.move(e.Key(), e.Modifiers())
	}
	return nil
}

func (d *Dashboard) quit() {
	d.quits++
	if d.options.Quit != nil {
		d.options.Quit(d.quits)
	}
	if d.quits == 1 && !d.options.Replay {
		d.state.say(time.Now(), "finishing what is in hand; q again stops at once")
	}
}

func (d *Dashboard) letter(r rune) {
	st := &d.state
	switch {
	case r >= '0' && r <= '6':
		st.view, st.top = view(r-'0'), 0
	case r == 'q':
		d.quit()
	case r == '?':
		d.help()
	case r == '/':
		d.askFilter()
	case r == 'p':
		st.frozen = !st.frozen
		d.refresh()
	case r == ' ' && d.options.Replay:
		if c := d.control.Load(); c != nil && c.PlayPause != nil {
			c.PlayPause()
		}
	case r == 'f':
		d.faults()
	case r == 'k':
		d.kill()
	case r == 'z':
		st.span = st.shown(d.shown) / 2
	case r == 'Z':
		st.span = st.shown(d.shown) * 2
	case r == 'n':
		d.violation(1)
	case r == 'N':
		d.violation(-1)
	case r == '+':
		d.rate(faster)
	case r == '-':
		d.rate(slower)
	}
}

func (d *Dashboard) move(k tcell.Key, m tcell.ModMask) {
	st := &d.state
	switch k {
	case tcell.KeyUp:
		d.choose(-1)
	case tcell.KeyDown:
		d.choose(1)
	case tcell.KeyTab:
		st.waits = !st.waits
	case tcell.KeyEnter:
		if e := st.chosenEvent(d.shown); e != nil {
			d.open("event", &eventBox{tview.NewBox(), d, *e}, 78, 20)
		}
	case tcell.KeyLeft, tcell.KeyRight, tcell.KeyHome, tcell.KeyEnd:
		if c := d.control.Load(); c != nil && c.Seek != nil {
			seek(c.Seek, k, m, min(time.Second, st.shown(d.shown)/4))
		} else {
			st.scroll(d.shown, k)
		}
	}
}

// choose moves the selection by the given number of rows: runs, lanes, workers, nodes or events, depending on the
// view.
func (d *Dashboard) choose(down int) {
	if c := d.control.Load(); d.state.view == boardView && c != nil && c.Choose != nil {
		c.Choose(down)
		d.refresh()
		return
	}
	switch st := &d.state; st.view {
	case nodesView:
		st.node = min(max(st.node+down, 0), max(len(st.nodes(d.shown))-1, 0))
	case holdersView, fairnessView:
		st.top = max(st.top+down, 0) // the drawing limits it to the length of the list
	default:
		st.event = min(max(st.event-down, 0), len(st.events(d.shown)))
	}
}

// scroll moves the lanes of a run by a quarter of the time that they show, within the last minute. Scrolled lanes
// stand still while the run goes on.
func (st *state) scroll(s *measure.Snapshot, k tcell.Key) {
	span := st.shown(s)
	until := cmp.Or(st.until, s.LanesEnd)
	switch k {
	case tcell.KeyLeft:
		until -= span / 4
	case tcell.KeyRight:
		until += span / 4
	case tcell.KeyHome:
		until = 0
	case tcell.KeyEnd:
		until = s.LanesEnd
	}
	if st.until = max(until, s.LanesEnd-mostSpan+span, min(span, s.LanesEnd)); st.until >= s.LanesEnd {
		st.until = 0
	}
}

// seek moves a replay by a step, or by a tenth of it if Shift or Ctrl is pressed.
func seek(by func(time.Duration), k tcell.Key, m tcell.ModMask, step time.Duration) {
	if m&(tcell.ModShift|tcell.ModCtrl) != 0 {
		step /= 10
	}
	switch k {
	case tcell.KeyLeft:
		by(-step)
	case tcell.KeyRight:
		by(step)
	case tcell.KeyHome:
		by(-forever)
	case tcell.KeyEnd:
		by(forever)
	}
}

func (d *Dashboard) kill() {
	st := &d.state
	c := d.control.Load()
	nodes := st.nodes(d.shown)
	switch {
	case c == nil || c.Kill == nil:
		st.say(time.Now(), "no node can be killed now")
	case st.view != nodesView:
		st.say(time.Now(), "5 shows the nodes: choose one there with the arrows, then k")
	case st.node < len(nodes):
		name := nodes[st.node].Name
		d.confirm("kill "+name+" (k again brings it back)", c.Kill(name))
	}
}

// Factors by which the keys + and - change the rate. Each key undoes the other.
const (
	faster = 1.25
	slower = 1 / faster
)

func (d *Dashboard) violation(step int) {
	c := d.control.Load()
	switch {
	case c == nil || c.Violation == nil:
		d.state.say(time.Now(), "only a replay can go to the next violation: 6 lists those of this run")
	case !c.Violation(step):
		d.state.say(time.Now(), "there is no violation %s",
			map[bool]string{true: "after this", false: "before this"}[step > 0])
	}
}

// rate changes the rate of visits, or the speed of a replay. If this is not possible, it shows the reason.
func (d *Dashboard) rate(factor float64) {
	c := d.control.Load()
	if c != nil && c.Speed != nil {
		c.Speed(map[bool]float64{true: 2, false: 0.5}[factor > 1])
		return
	}
	if c == nil || c.Rate == nil {
		d.state.say(time.Now(), "the rate cannot be changed now")
		return
	}
	now, err := c.Rate(factor)
	if err != nil {
		d.confirm("", err)
		return
	}
	d.state.say(time.Now(), "%s visits a second from now on; the run is marked interactive", human.Number(now))
}

// confirm shows that an action was done, or its error.
func (d *Dashboard) confirm(what string, err error) {
	if err != nil {
		d.state.say(time.Now(), "%v", err)
		return
	}
	d.state.say(time.Now(), "%s: done; the run is marked interactive", what)
}

// chosenEvent returns the chosen event. If none is chosen it returns the newest, or nil if there are no events.
func (st *state) chosenEvent(s *measure.Snapshot) *measure.Event {
	all := st.events(s)
	at := st.chosen(len(all))
	if len(all) == 0 {
		return nil
	}
	if at < 0 {
		at = len(all) - 1
	}
	return &all[at]
}
