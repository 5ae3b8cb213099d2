package dashboard

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"go.uber.org/goleak"

	"hammerlock/internal/measure"
	"hammerlock/results"
)

var update = flag.Bool("update", false, "write the golden frames")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// picture returns a fixed snapshot in which everything happens together.
func picture() *measure.Snapshot {
	ms := time.Millisecond
	q := func(n int64, p50, p99 time.Duration) measure.Quantiles {
		return measure.Quantiles{Count: n, P50: p50, P99: p99}
	}
	cpu, trips, commands := 41_500.0, 2.04, 4.11
	s := &measure.Snapshot{
		Stage: "running", From: 2 * time.Second, To: 62 * time.Second,
		Head: measure.Head{Number: 3, Of: 5, Topology: "sentinel", Lock: "lease", Workers: 16, Keys: 1,
			Faults: []string{"kill-primary@20s"}},
		Live: measure.Live{At: 41_200 * ms, Done: 203_456, Errors: 1_234, Waiting: 14,
			Acquire: measure.Quantiles{Count: 5000, P50: 54 * time.Microsecond, P99: 3 * ms}},
		Latency: []measure.LatencyRow{
			{Name: "acquire", Now: q(5000, 54_200, 3*ms), Ten: q(50_000, 51_000, 2_900_000),
				Run: q(200_000, 56_100, 346*ms)},
			{Name: "response", Now: q(50, 1_300_000, 9*ms), Ten: q(50_000, 1_280_000, 8*ms),
				Run: q(200_000, 1_310_000, 351*ms)},
		},
		Random: q(200_000, 346*ms, 1200*ms), Longest: 5170 * ms, LongestBy: 7, LanesEnd: 41_200 * ms, Hidden: 0,
		Fairness: results.Fairness{Jain: 0.871, Starving: 2,
			Worst: results.Worker{Worker: 7, Visits: 12, Longest: int64(5170 * ms)}},
		Nodes: []measure.NodeState{
			{Name: "n1", Role: "?", Made: "primary", State: "down", Lag: -1},
			{Name: "n2", Role: "replica", Made: "replica", State: "up", Of: "n3", Linked: true, Lag: 1_234_567,
				Clients: 2},
			{Name: "n3", Role: "primary", Made: "replica", State: "up", Clients: 33, Lag: -1},
			{Name: "n4", Role: "replica", Made: "replica", State: "paused", Of: "n3", Lag: -1},
			{Name: "s1", Role: "sentinel", Made: "sentinel", State: "up", Clients: 4, Lag: -1},
		},
		Cuts:   []string{"drop n3<->n4"},
		Cost:   results.Cost{RoundTrips: &trips, Commands: &commands, ServerCPU: &cpu},
		Active: []string{"kill-primary: killed n1"},
		Safety: measure.Safety{Violations: 3, Excludes: true, SafeUpTo: 20 * time.Second, First: "two holders"},
		Generator: results.Generator{State: results.Suspect,
			Reasons: []string{"closed loop on the servers' cores"}},
	}
	s.Lanes, s.Fairness.Workers = pictureLanes()
	s.Seconds, s.Roles = pictureSeconds(), pictureRoles(s.Nodes)
	s.Events = []measure.Event{
		{Kind: measure.FaultEvent, At: 8 * time.Second, To: 9 * time.Second, Count: 1,
			Text: "delay: clients are 20ms to 40ms away"},
		{Kind: measure.FaultEvent, At: 31_004 * ms, Count: 1, Text: "kill-primary: killed n1"},
		{Kind: measure.RoleEvent, At: 32_190 * ms, Count: 1, Text: "n3 became primary"},
		{Kind: measure.LeaseLostEvent, At: 33 * time.Second, Count: 4, Text: "w02 was told that its hold is lost"},
		{Kind: measure.ViolationEvent, At: 33_170 * ms, Count: 3,
			Text: "w03 was granted page 0 at 33.170000s while w05, granted at 30.990000s, believed in it until " +
				"35.980000s",
			Detail: []string{"what: exclusion", "happened at 33.170 s, proved at 33.181 s"},
			Around: slices.Clone(s.Lanes[2:6]), Begin: 32_425 * ms},
	}
	for i := range s.Events[4].Around {
		l := &s.Events[4].Around[i]
		l.Cells = l.Cells[measure.StripCells-60:]
	}
	return s
}

// agentPicture returns three agents: one of them is lost, and one was silent for a while.
func agentPicture() []results.LiveAgent {
	return []results.LiveAgent{
		{Agent: results.Agent{Name: "a", Host: "host1", Spool: 64_512, Doubt: 1_600}, Rate: 12_345,
			UpTo: 41_000 * time.Millisecond},
		{Agent: results.Agent{Name: "b", Host: "host2", Lost: "was lost"}, UpTo: 31_250 * time.Millisecond},
		{Agent: results.Agent{Name: "c", Host: "host3", Spool: 12_345_678, Doubt: 184_000}, Rate: 8,
			UpTo: 37_700 * time.Millisecond},
	}
}

func pictureSeconds() (all []measure.Second) {
	for i := range 41 {
		done := int64(4000 + 97*((i*37)%23))
		if i > 30 && i < 35 {
			done = int64(i) - 31
		}
		second := measure.Second{At: time.Duration(i) * time.Second, Done: done, Fault: i >= 31}
		for k := range 8 { // durations are similar, and longer while the fault is in force
			second.Response[min(6+k+i/31*3, measure.Bands-1)] = uint32(done) >> (2*k + i%3)
		}
		second.Acquire[3] = uint32(done)
		all = append(all, second)
	}
	return all
}

func pictureRoles(nodes []measure.NodeState) (all []measure.Roles) {
	for _, n := range nodes {
		all = append(all, measure.Roles{Node: n.Name, Spans: []measure.Role{{What: n.Made}}})
	}
	all[0].Spans = append(all[0].Spans, measure.Role{From: 31 * time.Second, What: "down"})
	all[2].Spans = append(all[2].Spans, measure.Role{From: 32_190 * time.Millisecond, What: "primary"})
	all[3].Spans = append(all[3].Spans, measure.Role{From: 40 * time.Second, What: "paused"})
	return all
}

func pictureLanes() (lanes []measure.Strip, workers []results.Worker) {
	ms := time.Millisecond
	for w := range 16 {
		l := measure.Strip{Worker: w, Cells: make([]measure.Cell, measure.StripCells), Mode: measure.Waited,
			Since: time.Duration(w) * 11 * ms}
		for i := range l.Cells {
			switch at := measure.StripCells - i; {
			case w == 3 && at < 40:
				l.Cells[i] = measure.Held | measure.Overlap | measure.Whole
			case w == 5 && at < 70:
				l.Cells[i] = measure.Stopped | measure.Held | measure.Whole
			case w == 9 && at < 55:
				l.Cells[i] = measure.Orphaned
			case (i/4+w)%16 == 0:
				l.Cells[i] = measure.Held | measure.Whole/4*measure.Cell(1+w%4)
			default:
				l.Cells[i] = measure.Waited
			}
		}
		lanes = append(lanes, l)
		workers = append(workers, results.Worker{Worker: w, Visits: int64(100 + w*w*10)})
	}
	lanes[3].Mode, lanes[3].Lease = measure.Held, 4200*ms
	lanes[5].Mode, lanes[5].Since = measure.Held|measure.Stopped, 1750*ms
	lanes[9].Mode, lanes[9].Lease = measure.Orphaned, 3100*ms
	return lanes, workers
}

// inTurns returns the lane of a worker, as cells. Each of 16 workers holds the lock for 1 ms in turn. At 41.2 s
// worker 3 holds it although it is not its turn.
func inTurns(worker int, from, to time.Duration, n int) []measure.Cell {
	cells := make([]measure.Cell, n)
	for i := range cells {
		at := from + (to-from)*time.Duration(2*i+1)/time.Duration(2*n)
		switch {
		case worker == 3 && at >= 41_200*time.Millisecond && at < 41_201*time.Millisecond:
			cells[i] = measure.Held | measure.Overlap | measure.Whole
		case to-from > time.Second:
			cells[i] = measure.Held | measure.Waited | measure.Whole/16
		case int(at/time.Millisecond)%16 == worker:
			cells[i] = measure.Held | measure.Whole
		default:
			cells[i] = measure.Waited
		}
	}
	return cells
}

// simulation returns a screen in memory.
func simulation(t testing.TB, w, h int) tcell.SimulationScreen {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	screen.SetSize(w, h)
	return &still{SimulationScreen: screen}
}

// still is a screen in memory that can be read during a drawing: it keeps the last complete frame.
type still struct {
	tcell.SimulationScreen
	mu    sync.Mutex
	cells []tcell.SimCell
	w, h  int
}

func (s *still) Show() { s.keep(s.SimulationScreen.Show) }
func (s *still) Sync() { s.keep(s.SimulationScreen.Sync) }

func (s *still) keep(draw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	draw()
	cells, w, h := s.SimulationScreen.GetContents()
	s.cells, s.w, s.h = make([]tcell.SimCell, len(cells)), w, h
	for i, c := range cells {
		c.Runes = slices.Clone(c.Runes)
		s.cells[i] = c
	}
}

func (s *still) GetContents() ([]tcell.SimCell, int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cells, s.w, s.h
}

// frame reads the letters on a screen. If wanted, it adds their styles below: b bold, r reverse, c in colour, d dim.
func frame(screen tcell.SimulationScreen, styles bool) string {
	cells, w, h := screen.GetContents()
	var text, tones strings.Builder
	for y := range h {
		row, tone := "", ""
		for x := range w {
			c := cells[y*w+x]
			r := ' '
			if len(c.Runes) > 0 {
				r = c.Runes[0]
			}
			row += string(r)
			fg, bg, attrs := c.Style.Decompose()
			mark := " "
			switch {
			case fg != tcell.ColorDefault || bg != tcell.ColorDefault:
				mark = "c"
			case attrs&tcell.AttrReverse != 0:
				mark = "r"
			case attrs&tcell.AttrBold != 0:
				mark = "b"
			case attrs&tcell.AttrDim != 0:
				mark = "d"
			}
			tone += mark
		}
		fmt.Fprintln(&text, strings.TrimRight(row, " "))
		fmt.Fprintln(&tones, strings.TrimRight(tone, " "))
	}
	if styles {
		return text.String() + "\n" + tones.String()
	}
	return text.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

var color = look{color: true}

// boardPicture draws runs in each state, more than a small screen has rows.
func boardPicture(s *measure.Snapshot, st *state) {
	b := &measure.Board{Chosen: 5, Ended: 4, Left: 14*time.Second + 300*time.Millisecond, Rows: []measure.Row{
		{Number: 3, Name: "sentinel lease late-holder", State: "FAIL",
			Text: "exclusion: foreign-release, 994 holds, 871 hand-offs, 2.6 s", Place: 3},
		{Number: 5, Name: "sentinel lease crash", State: "running", Text: "1.2 of 2.4 s, 345 visits"},
		{Number: 6, Name: "sentinel lease shared-object-with-a-long-name", State: "running",
			Text: "0.1 of 2.0 s, 0 visits"},
		{Number: 4, Name: "sentinel lease cancelled", State: "INCONCLUSIVE",
			Text: "12 holds, 3 hand-offs, 0 overlaps, 2.4 s", Place: 4},
		{Number: 2, Name: "sentinel lease two-processes", State: "PASS",
			Text: "4 595 holds, 2 307 hand-offs, 0 overlaps, 1.8 s", Place: 2},
		{Number: 1, Name: "sentinel lease contention", State: "PASS",
			Text: "2 464 holds, 1 246 hand-offs, 0 overlaps, 1.9 s", Place: 1},
	}}
	for n := 7; n < 28; n++ {
		b.Rows = append(b.Rows, measure.Row{Number: n, Name: fmt.Sprintf("sentinel lease waiting-%d", n),
			State: "waiting"})
	}
	s.Board, st.view = b, boardView
}

// frames are pictures of the views, and of the messages in them.
var frames = map[string]struct {
	w, h   int
	look   look
	change func(*measure.Snapshot, *state)
	styles bool
}{
	"80x24":         {80, 24, color, nil, true},
	"100x34":        {100, 34, color, nil, false},
	"200x60":        {200, 60, color, nil, false},
	"ascii":         {80, 24, look{ascii: true}, nil, true},
	"ascii-latency": {80, 24, look{ascii: true}, func(_ *measure.Snapshot, st *state) { st.view = latencyView }, true},
	"small":         {60, 15, color, nil, false},
	"starting": {80, 24, color, func(s *measure.Snapshot, _ *state) {
		*s = measure.Snapshot{Stage: "starting", LongestBy: -1, Head: s.Head,
			Steps: []measure.Step{{At: 10 * time.Millisecond, Doing: "2 nodes"},
				{At: 200 * time.Millisecond, Doing: "not ready yet: " + strings.Repeat("n1 lacks a role\n", 6)}}}
	}, false},
	"early": {80, 24, color, func(s *measure.Snapshot, _ *state) {
		*s = measure.Snapshot{Stage: "running", LongestBy: -1, Head: s.Head, Live: measure.Live{At: time.Second},
			From:    2 * time.Second,
			Latency: []measure.LatencyRow{{Name: "acquire"}, {Name: "response"}}}
	}, false},
	"safe":  {80, 24, color, func(s *measure.Snapshot, _ *state) { s.Safety.Violations, s.Active = 0, nil }, false},
	"locks": {100, 34, color, func(_ *measure.Snapshot, st *state) { st.view = holdersView }, false},
	"scrolled": {80, 24, color, func(s *measure.Snapshot, st *state) {
		st.view, st.span, st.until, st.top = holdersView, 20*time.Second, s.LanesEnd-time.Second, 1
	}, false},
	"latency": {100, 34, color, func(_ *measure.Snapshot, st *state) { st.view = latencyView }, false},
	"waits":   {80, 24, color, func(_ *measure.Snapshot, st *state) { st.view, st.waits = latencyView, true }, false},
	"decades": {80, 24, color, func(s *measure.Snapshot, st *state) {
		st.view = latencyView
		s.Seconds[39].Response[0], s.Seconds[39].Response[measure.Bands-1] = 900, 1
	}, false},
	"fairness": {100, 34, color, func(_ *measure.Snapshot, st *state) { st.view = fairnessView }, false},
	"nodes":    {100, 34, color, func(_ *measure.Snapshot, st *state) { st.view, st.node = nodesView, 2 }, true},
	"events":   {100, 34, color, func(_ *measure.Snapshot, st *state) { st.view, st.event = eventsView, 2 }, true},
	"replay": {80, 24, color, func(s *measure.Snapshot, st *state) {
		s.To, s.Lane = 60*time.Second, inTurns
		st.replay, s.Stage, s.Speed, s.Nodes, s.Cuts, s.Cost, s.Roles = true, "replay", 0.5, nil, nil, results.Cost{},
			s.Roles[2:3]
	}, false},
	"zoomed": {80, 24, color, func(s *measure.Snapshot, st *state) {
		s.To, s.Lane, st.replay, st.view, st.span = 60*time.Second, inTurns, true, holdersView, 2*time.Millisecond
	}, false},
	"filtered": {100, 34, color, func(_ *measure.Snapshot, st *state) { st.filter = "killed" }, false},
	"frozen":   {80, 24, color, func(_ *measure.Snapshot, st *state) { st.frozen, st.message = true, "said" }, false},
	"phases": {100, 34, color, func(s *measure.Snapshot, _ *state) {
		s.Head.Rate, s.Head.Phases = 437.5, []measure.Span{{Name: "warm-up", To: 2 * time.Second},
			{Name: "ramp", To: 12 * time.Second},
			{Name: "steady", To: 24 * time.Second}, {Name: "burst", To: 31 * time.Second},
			{Name: "kill-primary", To: 50 * time.Second}}
	}, true},
	"service": {100, 34, color, func(s *measure.Snapshot, _ *state) {
		s.Head.Unseen, s.Safety, s.Lanes, s.Cuts, s.Latency = true, measure.Safety{}, nil, nil, s.Latency[1:]
		s.Nodes = []measure.NodeState{{Name: "program1", Role: "program", State: "up"},
			{Name: "program2", Role: "program", State: "paused"}}
	}, false},
	"agents": {100, 34, color, func(s *measure.Snapshot, st *state) {
		s.Agents = agentPicture()
	}, true},
	"agents-view": {100, 34, color, func(s *measure.Snapshot, st *state) {
		s.Agents, st.view = agentPicture(), nodesView
	}, false},
	"board":       {80, 24, color, boardPicture, true},
	"board-large": {120, 40, color, boardPicture, false},
	"interactive": {80, 24, color, func(s *measure.Snapshot,
		_ *state) {
		s.Head.Interactive = true
		s.Head.Rate = 1000
	}, false},
}

func TestFrames(t *testing.T) {
	for name, tt := range frames {
		t.Run(name, func(t *testing.T) {
			screen := simulation(t, tt.w, tt.h)
			defer screen.Fini()
			s, st := picture(), &state{view: allView}
			if tt.change != nil {
				tt.change(s, st)
			}
			draw(canvas{screen, tt.look, 0, 0, tt.w, tt.h}, s, st, time.Time{})
			screen.Show()
			got := frame(screen, tt.styles)
			if !tt.look.color && strings.Contains(strings.SplitN(got, "\n", tt.h+2)[tt.h+1], "c") {
				t.Error("there is colour")
			}
			golden(t, name, got)
			if tt.look.ascii && strings.IndexFunc(got, func(r rune) bool { return r > 126 }) >= 0 {
				t.Error("there are letters that are not ASCII")
			}
		})
	}
}

func boarded() *measure.Snapshot {
	s := picture()
	boardPicture(s, &state{})
	return s
}

// TestEverySizeCanBeDrawn: at any size of the screen, nothing panics and nothing is written outside.
func TestEverySizeCanBeDrawn(t *testing.T) {
	screen := simulation(t, 300, 100)
	defer screen.Fini()
	wider, higher := 7, 3
	if testing.Short() {
		wider, higher = 31, 11
	}
	for _, s := range []*measure.Snapshot{picture(), boarded(), {Stage: "starting", LongestBy: -1}} {
		for w := 0; w <= 300; w += wider {
			for h := 0; h <= 100; h += higher {
				for v := boardView; v <= eventsView; v++ {
					draw(canvas{screen, look{}, 0, 0, w, h}, s, &state{view: v}, time.Time{})
				}
				window(canvas{screen, look{}, 0, 0, w, h}, &measure.Event{Around: s.Lanes[:min(3, len(s.Lanes))]},
					"esc")
			}
		}
	}
}
