// Package dashboard shows a run in progress or a saved run on a terminal. It draws snapshots of the measurements
// four times a second, and after each key. The measuring goroutine never waits for it.
package dashboard

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"hammerlock/internal/measure"
)

// redrawEvery is the time between two drawings if no key is pressed.
const redrawEvery = 250 * time.Millisecond

// tick is a key that no keyboard has; it makes the drawing goroutine draw. It is posted to the event queue of the
// screen. The application's own queue would block while the application does not run.
const tick = tcell.KeyF64

// Options say what the terminal can show, and whether a saved run is replayed.
type Options struct {
	ASCII bool
	Color bool
	// Quit is called whenever the key q is pressed; times is 1 for the first time. After the first time the run
	// still finishes the visits in progress.
	Quit   func(times int)
	Replay bool
}

// Dashboard draws on a screen. Its exported methods are safe for concurrent use.
type Dashboard struct {
	options Options
	screen  tcell.Screen
	guard   *guard // nil if the caller has opened the screen
	app     *tview.Application
	pages   *tview.Pages
	main    *board
	latest  atomic.Pointer[measure.Snapshot]
	control atomic.Pointer[measure.Controls]

	closing chan struct{}
	once    sync.Once
	ended   chan struct{}
	err     error
	ticks   sync.WaitGroup

	// Only the drawing goroutine uses the following fields.
	state state
	shown *measure.Snapshot
	popup string
	quits int
}

// Open makes a dashboard on an initialized screen, and starts to draw.
func Open(screen tcell.Screen, o Options) *Dashboard {
	d := &Dashboard{options: o, screen: screen, closing: make(chan struct{}), ended: make(chan struct{}),
		state: state{replay: o.Replay}, shown: &measure.Snapshot{Stage: "starting", LongestBy: -1}}
	d.setTheme()
	d.main = &board{Box: tview.NewBox(), dashboard: d}
	d.pages = tview.NewPages().AddPage("main", d.main, true, true)
	d.app = tview.NewApplication().SetRoot(d.pages, true).SetInputCapture(d.key)
	d.app.SetScreen(initialized{screen})
	go func() {
		defer close(d.ended)
		d.err = d.app.Run()
	}()
	d.ticks.Go(d.tick)
	return d
}

type initialized struct{ tcell.Screen }

// Init does nothing, because the screen is initialized already.
func (initialized) Init() error { return nil }

// Publish sets the snapshot for the next drawing.
func (d *Dashboard) Publish(s *measure.Snapshot) { d.latest.Store(s) }

// Control sets the functions by which keys change the run; nil = no key changes it.
func (d *Dashboard) Control(c *measure.Controls) { d.control.Store(c) }

// Close ends the dashboard. When it returns, the terminal is as it was before.
func (d *Dashboard) Close() error {
	d.once.Do(func() { close(d.closing) })
	d.ticks.Wait()
	<-d.ended
	err := errors.Join(d.err, d.guard.dismiss())
	d.guard = nil
	return err
}

// tick posts the key tick at regular times until the dashboard is closed. A full queue is no problem, because the
// keys in it also make the dashboard draw.
func (d *Dashboard) tick() {
	redraw := time.Tick(redrawEvery)
	for {
		select {
		case <-d.ended:
			return
		case <-d.closing:
			_ = d.screen.PostEvent(tcell.NewEventKey(tick, 0, tcell.ModNone))
			select { // repeat it, because the queue may have been full
			case <-redraw:
			case <-d.ended:
			}
		case <-redraw:
			_ = d.screen.PostEvent(tcell.NewEventKey(tick, 0, tcell.ModNone))
		}
	}
}

func (d *Dashboard) isClosing() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// refresh takes the newest snapshot, unless the user has frozen the display.
func (d *Dashboard) refresh() {
	if s := d.latest.Load(); s != nil && !d.state.frozen {
		d.shown = s
	}
}

// setTheme makes pop-ups use the colours of the terminal, and characters that it can show.
func (d *Dashboard) setTheme() {
	tview.Styles = tview.Theme{PrimaryTextColor: tcell.ColorDefault}
	if d.options.ASCII {
		b := &tview.Borders
		b.Horizontal, b.Vertical, b.HorizontalFocus, b.VerticalFocus = '-', '|', '-', '|'
		b.TopLeft, b.TopRight, b.BottomLeft, b.BottomRight = '+', '+', '+', '+'
		b.TopLeftFocus, b.TopRightFocus, b.BottomLeftFocus, b.BottomRightFocus = '+', '+', '+', '+'
	}
}

func (d *Dashboard) look() look { return look{ascii: d.options.ASCII, color: d.options.Color} }

// board is the main page; pop-ups lie above it.
type board struct {
	*tview.Box
	dashboard *Dashboard
}

func (b *board) Draw(screen tcell.Screen) {
	x, y, w, h := b.GetRect()
	d := b.dashboard
	draw(canvas{screen, d.look(), x, y, w, h}, d.shown, &d.state, time.Now())
}
