package dashboard

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v2"

	"hammerlock/internal/measure"
)

// onScreen is a dashboard on a screen in memory, in virtual time.
type onScreen struct {
	*Dashboard
	t      *testing.T
	screen tcell.SimulationScreen
	quits  atomic.Int64
}

func opened(t *testing.T, o Options) *onScreen {
	t.Helper()
	s := &onScreen{t: t, screen: simulation(t, 80, 24)}
	o.Quit = func(n int) { s.quits.Store(int64(n)) }
	s.Dashboard = Open(s.screen, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *onScreen) press(keys ...any) {
	for _, k := range keys {
		switch k := k.(type) {
		case rune:
			s.screen.InjectKey(tcell.KeyRune, k, tcell.ModNone)
		case tcell.Key:
			s.screen.InjectKey(k, 0, tcell.ModNone)
		}
	}
}

// shows checks that a text is on the screen, or is not, after the next drawing. It returns the frame.
func (s *onScreen) shows(text string, there bool) string {
	s.t.Helper()
	s.redrawn()
	got := frame(s.screen, false)
	if strings.Contains(got, text) != there {
		s.t.Fatalf("%q there: %v, wanted %v:\n%s", text, !there, there, got)
	}
	return got
}

// redrawn lets virtual time pass until the screen is drawn again, and all keys have had their effect.
func (s *onScreen) redrawn() {
	<-time.After(redrawEvery)
	synctest.Wait()
}

func TestKeys(t *testing.T) { synctest.Test(t, testKeys) }

func testKeys(t *testing.T) {
	s := opened(t, Options{Color: true})
	s.shows("starting", true)
	s.Publish(picture())
	s.shows("sentinel lease", true)
	s.press('?')
	golden(t, "help", s.shows("help: esc closes", true))
	s.press(tcell.KeyEscape)
	s.shows("help: esc closes", false)
	s.press('6')
	s.shows("throughput", false)
	s.press(tcell.KeyUp, tcell.KeyEnter)
	golden(t, "window", s.shows("esc closes", true))
	s.press(tcell.KeyEscape, '/', 'r', 'o', 'l', 'e', tcell.KeyEnter)
	s.shows("filter role", true)
	s.shows("w02 was told", false)
	s.press(tcell.KeyEscape, '1')
	s.shows("throughput", true)
	s.press('q')
	s.shows("q again stops", true)
	if s.quits.Load() != 1 {
		t.Errorf("quit %d times", s.quits.Load())
	}
	s.press(tcell.KeyCtrlC)
	if s.redrawn(); s.quits.Load() != 2 {
		t.Error("ctrl-c is not a second q")
	}
}

func TestFreeze(t *testing.T) { synctest.Test(t, testFreeze) }

func testFreeze(t *testing.T) {
	s := opened(t, Options{})
	s.Publish(picture())
	s.shows("running 41.2", true)
	s.press('p')
	s.shows("FROZEN", true)
	later := picture()
	later.At = 50 * time.Second
	s.Publish(later)
	s.redrawn()
	s.shows("FROZEN 41.2", true)
	s.press('p')
	s.shows("running 50.0", true)
}

// TestOrders: the actions of a user reach the run, and an impossible action is explained.
func TestOrders(t *testing.T) { synctest.Test(t, testOrders) }

func testOrders(t *testing.T) {
	var mu sync.Mutex
	var did []string
	do := func(what string) { mu.Lock(); defer mu.Unlock(); did = append(did, what) }
	s := opened(t, Options{})
	s.Publish(picture())
	s.shows("sentinel lease", true)
	s.press('k')
	s.shows("no node can be killed now", true)
	s.press('+')
	s.shows("the rate cannot be changed now", true)
	s.Control(&measure.Controls{
		Faults: []measure.Choice{{Name: "delay", Doc: "late", Refused: "needs links"}, {Name: "flush", Doc: "FLUSHALL"},
			{Name: "kill-node", Doc: "any", Targets: []string{"n1", "n2", "n3"}}},
		Inject: func(f, target string) error { do(strings.TrimSpace("inject " + f + " " + target)); return nil },
		Kill:   func(n string) error { do("kill " + n); return errors.New("no " + n) },
		Rate: func(factor float64) (float64, error) {
			do(fmt.Sprint("rate ", factor))
			if factor < 1 {
				return 0, errors.New("as slow as it goes")
			}
			return 100 * factor, nil
		},
	})
	s.press('f')
	if got := s.shows("delay              not here: needs links", true); !strings.Contains(got,
		"flush              FLUSHALL") {
		t.Errorf("an entry has not one row:\n%s", got)
	}
	s.press(tcell.KeyEnter)
	s.shows("inject flush: done", true)
	s.press('f', 'k', 'i', 'l', tcell.KeyEnter) // the letters select kill-node
	s.shows("n3                 primary, up", true)
	s.press(tcell.KeyDown, tcell.KeyDown, tcell.KeyEnter)
	s.shows("inject kill-node n2: done", true)
	s.press('n')
	s.shows("only a replay can go to the next violation", true)
	s.press('k')
	s.shows("choose one there", true)
	s.press('5', tcell.KeyDown, tcell.KeyDown, 'k')
	s.shows("no n3", true)
	s.press('+')
	s.shows("125 visits a second from now on; the run is marked interactive", true)
	s.press('-')
	s.shows("as slow as it goes", true)
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(did, ", "); got != "inject flush, inject kill-node n2, kill n3, rate 1.25, rate 0.8" {
		t.Errorf("got %s", got)
	}
}

// TestReplayKeys: the speed and the violations of a replay, and a seek where a run would scroll its lanes.
func TestReplayKeys(t *testing.T) { synctest.Test(t, testReplayKeys) }

func testReplayKeys(t *testing.T) {
	var mu sync.Mutex
	var did []string
	do := func(what ...any) {
		mu.Lock()
		defer mu.Unlock()
		did = append(did, strings.TrimSpace(fmt.Sprintln(what...)))
	}
	s := opened(t, Options{Replay: true})
	shot := picture()
	shot.Lane = inTurns
	s.Publish(shot)
	s.shows("n violation", true)
	s.Control(&measure.Controls{
		Seek: func(by time.Duration) { do("seek", by) }, Speed: func(f float64) { do("speed", f) },
		Violation: func(step int) bool { do("violation", step); return step > 0 },
	})
	// 62 s, and a 64th of it
	s.press('+', '-', tcell.KeyLeft, 'n', 'z', 'z', 'z', 'z', 'z', 'z', tcell.KeyRight, 'Z', 'N')
	s.shows("40.23 to 42.17 s", true)
	s.shows("there is no violation before this", true)
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(did,
		", "); got != "speed 2, speed 0.5, seek -1s, violation 1, seek 242.1875ms, violation -1" {
		t.Errorf("got %s", got)
	}
}

// TestScroll: the lanes of a run stay where they were scrolled to, within the minute that is kept.
func TestScroll(t *testing.T) {
	shot := &measure.Snapshot{LanesEnd: 90 * time.Second}
	st := &state{view: holdersView, span: 5 * time.Second}
	for _, step := range []struct {
		key  tcell.Key
		want time.Duration
	}{
		{tcell.KeyRight, 0}, {tcell.KeyLeft, 88750 * time.Millisecond}, {tcell.KeyRight, 0},
		{tcell.KeyHome, 35 * time.Second},
		{tcell.KeyLeft, 35 * time.Second}, {tcell.KeyRight, 36250 * time.Millisecond}, {tcell.KeyEnd, 0},
	} {
		if st.scroll(shot, step.key); st.until != step.want {
			t.Errorf("%v: the lanes end at %s, want %s", step.key, st.until, step.want)
		}
	}
	st.until = 40 * time.Second
	if got := st.stretch(shot, 200); got != (stretch{35 * time.Second, 40 * time.Second, measure.StripStep}) {
		t.Errorf("got %+v", got)
	}
}

// TestResizeStorm changes the size continuously; the last size counts.
func TestResizeStorm(t *testing.T) { synctest.Test(t, testResizeStorm) }

func testResizeStorm(t *testing.T) {
	s := opened(t, Options{})
	s.Publish(picture())
	for i := range 100 {
		w, h := 20+(i*37)%200, 5+(i*17)%60
		s.screen.SetSize(w, h)
		_ = s.screen.PostEvent(tcell.NewEventResize(w, h))
	}
	s.screen.SetSize(100, 30)
	_ = s.screen.PostEvent(tcell.NewEventResize(100, 30))
	s.shows("who holds the lock", true)
	s.screen.SetSize(40, 10)
	_ = s.screen.PostEvent(tcell.NewEventResize(40, 10))
	s.shows("panels need", true)
}

// TestClose gives the screen back immediately, whenever it is called. Later calls of Publish are harmless.
func TestClose(t *testing.T) { synctest.Test(t, testClose) }

func testClose(t *testing.T) {
	for range 8 {
		screen := simulation(t, 80, 24)
		d := Open(screen, Options{})
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			d.Publish(picture())
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestShows(t *testing.T) {
	for name, tt := range map[string]struct {
		env  map[string]string
		want Options
	}{
		"utf-8":   {map[string]string{"LANG": "en_US.UTF-8"}, Options{Color: true}},
		"C":       {map[string]string{"LANG": "C"}, Options{ASCII: true, Color: true}},
		"nothing": {map[string]string{}, Options{ASCII: true, Color: true}},
		"all wins": {map[string]string{"LC_ALL": "de_DE.ISO-8859-1", "LANG": "de_DE.utf8"},
			Options{ASCII: true, Color: true}},
		"ctype wins":  {map[string]string{"LC_CTYPE": "C.UTF-8", "LANG": "C"}, Options{Color: true}},
		"no colour":   {map[string]string{"LANG": "C.utf8", "NO_COLOR": "1"}, Options{}},
		"empty is no": {map[string]string{"LANG": "C.utf8", "NO_COLOR": ""}, Options{Color: true}},
	} {
		var got Options
		if got.ASCII, got.Color = shows(func(k string) string { return tt.env[k] }); got.ASCII != tt.want.ASCII ||
			got.Color != tt.want.Color {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
