package dashboard

import (
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"hammerlock/internal/measure"
)

const helpText = `1 all panels  2 who holds the lock  3 latency  4 fairness  5 nodes  6 events
up down  choose an event, in 5 a node    enter   open the event
/        show only what has a word       esc     close, forget the word
p        freeze the picture              ctrl-l  draw all of it again
f        inject a fault for 3 seconds    k       kill the node, start it
+ -      rate x1.25 or /1.25, open loop  ctrl-z  suspend the whole suite
q        finish what is in hand          q q     stop at once

A replay: left and right seek by a second, with shift by a tenth; home,
end; space stops and goes on.

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

// text replaces what the terminal cannot show.
func (d *Dashboard) text(s string) string { return strings.Map(d.look().letter, s) }

func (d *Dashboard) help() {
	t := tview.NewTextView().SetText(d.text(helpText + legend()))
	t.SetTextStyle(tcell.StyleDefault).SetBorder(true).SetTitle(" help: esc closes ")
	t.SetBorderStyle(tcell.StyleDefault)
	d.open("help", t, 78, 20)
}

// askFilter reads the filter.
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

// faults lists what can be injected, and why the rest cannot.
func (d *Dashboard) faults() {
	c := d.control.Load()
	if c == nil || c.Inject == nil {
		d.state.say(time.Now(), "nothing can be injected now")
		return
	}
	l := tview.NewList().ShowSecondaryText(true)
	l.SetMainTextStyle(tcell.StyleDefault.Bold(true)).SetSecondaryTextStyle(tcell.StyleDefault.Dim(true)).
		SetSelectedStyle(tcell.StyleDefault.Reverse(true)).SetBorder(true).SetBorderStyle(tcell.StyleDefault).
		SetTitle(" inject a fault: enter, or esc ")
	for _, f := range c.Faults {
		if f.Refused != "" {
			continue
		}
		l.AddItem(f.Name, d.text(tview.Escape(cut(f.Doc, 70))), 0, func() {
			d.closePopup()
			d.confirm("inject "+f.Name, c.Inject(f.Name))
		})
	}
	for _, f := range c.Faults {
		if f.Refused != "" {
			l.AddItem(f.Name+" (not here)", d.text(tview.Escape(cut(f.Refused, 70))), 0, func() {
				d.closePopup()
				d.state.say(time.Now(), "%s: %s", f.Name, f.Refused)
			})
		}
	}
	d.open("faults", l, 76, 20)
}

// openEvent shows the chosen event, or the newest.
func (d *Dashboard) openEvent() {
	if e := d.chosenEvent(); e != nil {
		d.open("event", &eventBox{tview.NewBox(), d, *e}, 78, 20)
	}
}

// eventBox is the pop-up of an event.
type eventBox struct {
	*tview.Box
	dashboard *Dashboard
	event     measure.Event
}

// Draw implements tview.Primitive. It looks an event up again whose surroundings were not known when it was opened.
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
	window(c.part(1, 0, w-2, h-1), &b.event)
}
