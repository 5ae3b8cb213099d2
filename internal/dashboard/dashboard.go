// Package dashboard shows a run in progress, or a saved run, from published snapshots. A goroutine draws four times a
// second and after each key. Publishing never waits for it.
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

// redrawEvery is the time between two drawings without a key.
const redrawEvery = 250 * time.Millisecond

// tick is a key that no keyboard has. It makes the drawing goroutine draw. It goes through the screen's event queue:
// the application's queue would block before the application runs and after it has stopped.
const tick = tcell.KeyF64

// Options tell what the terminal can show, and whether this is a replay.
type Options struct {
	ASCII bool
	Color bool
	// Quit is called each time q is pressed, with the number of times so far. After the first time, the run finishes
	// visits in progress.
	Quit   func(times int)
	Replay bool
}

// Dashboard is a dashboard on a screen. Its exported methods are safe for concurrent use.
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

	// Only the drawing goroutine uses the fields below.
	state state
	shown *measure.Snapshot
	popup string
	quits int
}

// Open takes over an initialized screen, and starts to draw.
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

// Init does nothing.
func (initialized) Init() error { return nil }

// Publish sets the snapshot that is drawn next.
func (d *Dashboard) Publish(s *measure.Snapshot) { d.latest.Store(s) }

// Control sets the actions of keys on the run; may be nil.
func (d *Dashboard) Control(c *measure.Controls) { d.control.Store(c) }

// Close ends the dashboard. It returns when the screen is restored.
func (d *Dashboard) Close() error {
	d.once.Do(func() { close(d.closing) })
	d.ticks.Wait()
	<-d.ended
	err := errors.Join(d.err, d.guard.dismiss())
	d.guard = nil
	return err
}

// tick posts the key tick until the dashboard is closed. If the queue is full, it already has a tick.
func (d *Dashboard) tick() {
	redraw := time.Tick(redrawEvery)
	for {
		select {
		case <-d.ended:
			return
		case <-d.closing:
			_ = d.screen.PostEvent(tcell.NewEventKey(tick, 0, tcell.ModNone))
			select { // post it again, in case the queue was full
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

// refresh takes the newest snapshot, unless the display is frozen.
func (d *Dashboard) refresh() {
	if s := d.latest.Load(); s != nil && !d.state.frozen {
		d.shown = s
	}
}

// setTheme makes pop-ups use the terminal's own colours and characters.
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

// board is the page below the pop-ups.
type board struct {
	*tview.Box
	dashboard *Dashboard
}

func (b *board) Draw(screen tcell.Screen) {
	x, y, w, h := b.GetRect()
	d := b.dashboard
	draw(canvas{screen, d.look(), x, y, w, h}, d.shown, &d.state, time.Now())
}
