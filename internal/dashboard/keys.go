package dashboard

import (
	"time"

	"github.com/gdamore/tcell/v2"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// key handles every key. It runs on the drawing goroutine, which draws after it.
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
			d.state.filter, d.state.event = "", 0
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
	case r >= '1' && r <= '6':
		st.view = view(r - '0')
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
		if st.view == nodesView {
			st.node = max(st.node-1, 0)
		} else {
			st.event = min(st.event+1, len(st.events(d.shown)))
		}
	case tcell.KeyDown:
		if st.view == nodesView {
			st.node = min(st.node+1, max(len(st.nodes(d.shown))-1, 0))
		} else {
			st.event = max(st.event-1, 0)
		}
	case tcell.KeyEnter:
		d.openEvent()
	case tcell.KeyLeft, tcell.KeyRight, tcell.KeyHome, tcell.KeyEnd:
		d.seek(k, m)
	}
}

// seek moves a replay.
func (d *Dashboard) seek(k tcell.Key, m tcell.ModMask) {
	c := d.control.Load()
	if c == nil || c.Seek == nil {
		return
	}
	step := time.Second
	if m&(tcell.ModShift|tcell.ModCtrl) != 0 {
		step = 100 * time.Millisecond
	}
	switch k {
	case tcell.KeyLeft:
		c.Seek(-step)
	case tcell.KeyRight:
		c.Seek(step)
	case tcell.KeyHome:
		c.Seek(-forever)
	case tcell.KeyEnd:
		c.Seek(forever)
	}
}

// kill kills the chosen node, or restarts it.
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

// The factors of the keys for the rate; one undoes the other.
const (
	faster = 1.25
	slower = 1 / faster
)

// rate changes the rate of visits; an error of the run says why it cannot.
func (d *Dashboard) rate(factor float64) {
	c := d.control.Load()
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

// confirm shows what was done, or the error.
func (d *Dashboard) confirm(what string, err error) {
	if err != nil {
		d.state.say(time.Now(), "%v", err)
		return
	}
	d.state.say(time.Now(), "%s: done; the run is marked interactive", what)
}

// chosenEvent is the chosen event, or the newest; nil if there is none.
func (d *Dashboard) chosenEvent() *measure.Event {
	all := d.state.events(d.shown)
	at := d.state.chosen(len(all))
	if len(all) == 0 {
		return nil
	}
	if at < 0 {
		at = len(all) - 1
	}
	return &all[at]
}
