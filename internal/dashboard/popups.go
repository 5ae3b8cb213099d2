package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"hammerlock/internal/measure"
)

const helpText = `1 all panels  2 who holds the lock  3 latency  4 fairness  5 nodes  6 events
0 all runs, if they go on side by side; up down choose one
up down  choose an event, in 5 a node, in 2 and 4 scroll      enter  open it
z Z      lanes: less or more time        left right home end  scroll them
tab      in 3 waits or responses         ctrl-l  draw all of it again
/        show only what has a word       esc     close, forget the word
p        freeze the picture              ctrl-z  suspend the whole suite
f        inject a fault for 3 seconds    k       kill the node, start it
+ -      rate x1.25 or /1.25, open loop
q        finish what is in hand          q q     stop at once

A replay: z Z show less or more of the history; left and right seek by a
second, or by a quarter of what is shown if that is less, with shift by a
tenth of it; home, end; n and N go to the next violation and the one
before; + and - double and halve the speed; space stops and goes on.

What a person does to the run stands in its history and marks the run as
interactive. SAFETY is what a judge that sees the stream has proved; the
verdict at the end sees more. A lane, the most important mark first:
`

func (d *Dashboard) open(name string, p tview.Primitive, w, h int) {
	d.popup = name
	frame := tview.NewGrid().SetColumns(0, w, 0).SetRows(0, h, 0).AddItem(p, 1, 1, 1, 1, 0, 0, true)
	d.pages.AddPage(name, frame, true, true)
	d.app.SetFocus(p)
}

func (d *Dashboard) closePopup() {
	d.pages.RemovePage(d.popup)
	d.popup = ""
	d.app.SetFocus(d.main)
}

// text replaces the characters of s that the terminal cannot show.
func (d *Dashboard) text(s string) string { return strings.Map(d.look().letter, s) }

func (d *Dashboard) help() {
	t := tview.NewTextView().SetText(d.text(helpText + legend()))
	t.SetTextStyle(tcell.StyleDefault).SetBorder(true).SetTitle(" help: esc closes ")
	t.SetBorderStyle(tcell.StyleDefault)
	d.open("help", t, 78, 22)
}

func (d *Dashboard) askFilter() {
	f := tview.NewInputField().SetLabel("show only what has in it: ").SetText(d.state.filter).SetFieldWidth(30)
	f.SetLabelStyle(tcell.StyleDefault).SetFieldStyle(tcell.StyleDefault.Underline(true)).SetBorder(true).
		SetBorderStyle(tcell.StyleDefault)
	f.SetDoneFunc(func(tcell.Key) {
		d.state.filter, d.state.event = f.GetText(), 0
		d.closePopup()
	})
	d.open("filter", f, 64, 3)
}

// faults opens a list of faults. A fault that cannot be injected now has the reason.
func (d *Dashboard) faults() {
	c := d.control.Load()
	if c == nil || c.Inject == nil {
		d.state.say(time.Now(), "nothing can be injected now")
		return
	}
	l := d.list(" inject a fault: letters jump, enter, or esc ")
	for _, f := range c.Faults {
		if f.Refused == "" {
			l.AddItem(d.entry(f.Name, f.Doc), "", 0, func() {
				d.closePopup()
				d.target(c, f)
			})
		}
	}
	for _, f := range c.Faults {
		if f.Refused != "" {
			l.AddItem(d.entry(f.Name, "not here: "+f.Refused), "", 0, func() {
				d.closePopup()
				d.state.say(time.Now(), "%s is not here: it %s", f.Name, f.Refused)
			})
		}
	}
	d.open("faults", l, 78, 20)
}

// target injects a fault. If the fault has several possible targets, the user chooses one first.
func (d *Dashboard) target(c *measure.Controls, f measure.Choice) {
	inject := func(target string) {
		d.confirm(strings.TrimSpace("inject "+f.Name+" "+target), c.Inject(f.Name, target))
	}
	if len(f.Targets) == 0 {
		inject("")
		return
	}
	l := d.list(" " + f.Name + ": aimed at what? ")
	l.AddItem("whatever the seed draws", "", 0, func() { d.closePopup(); inject("") })
	for _, target := range f.Targets {
		state := ""
		if i := slices.IndexFunc(d.shown.Nodes, func(n measure.NodeState) bool { return n.Name == target }); i >= 0 {
			state = roleText(&d.shown.Nodes[i]) + ", " + d.shown.Nodes[i].State
		}
		l.AddItem(d.entry(target, state), "", 0, func() { d.closePopup(); inject(target) })
	}
	d.open("target", l, 60, min(len(f.Targets)+3, 20))
}

// entry makes a row of a list from a name and its description, which may be cut off.
func (d *Dashboard) entry(name, means string) string {
	return d.text(tview.Escape(cut(fmt.Sprintf("%-18s %s", name, means), 74)))
}

// list makes an empty list. If the user types letters, it goes to the next entry that begins with these letters.
func (d *Dashboard) list(title string) *tview.List {
	l := tview.NewList().ShowSecondaryText(false)
	l.SetMainTextStyle(tcell.StyleDefault).SetSelectedStyle(tcell.StyleDefault.Reverse(true)).SetBorder(true).
		SetBorderStyle(tcell.StyleDefault).SetTitle(title)
	typed := ""
	l.SetInputCapture(func(e *tcell.EventKey) *tcell.EventKey {
		if e.Key() != tcell.KeyRune {
			typed = ""
			return e
		}
		if typed += string(e.Rune()); !jump(l, typed, 0) {
			typed = string(e.Rune())
			jump(l, typed, 1)
		}
		return nil
	})
	return l
}

// jump goes to the next entry that begins with a text, and returns false if no entry does. The search starts at the
// current entry if after is 0, and at the next one if it is 1.
func jump(l *tview.List, text string, after int) bool {
	for i := range l.GetItemCount() {
		at := (l.GetCurrentItem() + after + i) % l.GetItemCount()
		if name, _ := l.GetItemText(at); strings.HasPrefix(name, text) {
			l.SetCurrentItem(at)
			return true
		}
	}
	return false
}

type eventBox struct {
	*tview.Box
	dashboard *Dashboard
	event     measure.Event
}

// Draw implements tview.Primitive. If it was not yet known what the workers did around the event, Draw looks again.
func (b *eventBox) Draw(screen tcell.Screen) {
	if b.event.Around == nil {
		for _, e := range b.dashboard.shown.Events {
			if e.At == b.event.At && e.Kind == b.event.Kind {
				b.event = e
			}
		}
	}
	x, y, w, h := b.GetRect()
	c := canvas{screen, b.dashboard.look(), x, y, w, h}
	for row := range h {
		c.row(row, plain, "")
		c.put(0, row, faint, "│")
		c.put(w-1, row, faint, "│")
	}
	c.put(0, h-1, faint, strings.Repeat("─", w))
	window(c.part(1, 0, w-2, h-1), &b.event, "esc closes")
}
