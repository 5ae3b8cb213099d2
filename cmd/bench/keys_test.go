package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hammerlock/history"
	"hammerlock/internal/cli"
	"hammerlock/results"
)

// Keys as a terminal sends them.
const (
	redraw   = "\x0c" // ctrl-l
	rightKey = "\x1bOC"
	leftKey  = "\x1bOD"
	homeKey  = "\x1bOH"
	endKey   = "\x1bOF"
)

// The method shows waits until the screen has a match of the pattern for which ok returns true. It returns the groups
// of the match. The program writes only changes to the screen, so shows makes it redraw the whole screen now and
// then.
func (s *seat) shows(pattern string, ok func(groups []string) bool) []string {
	s.t.Helper()
	s.forget()
	re := regexp.MustCompile(pattern)
	const every = 20 // polls
	var found []string
	polls := 0
	s.wait(pattern, func() bool {
		if polls++; polls%every == 1 {
			s.types(redraw)
		}
		for _, groups := range slices.Backward(re.FindAllStringSubmatch(s.text(), -1)) {
			if ok == nil || ok(groups) {
				found = groups
			}
		}
		return found != nil
	})
	return found
}

// alone is a long run of verify with one worker: what is done to its server costs it time and nothing else.
func alone(t *testing.T) *seat {
	return sit(t, 100, 30, nil, linked(t, "verify"), "--topology", "single", "--workers", "1", "--warmup", "0s",
		"--duration", "10m", "--lease", "200ms", "--fault", "none", "--out", "runs")
}

// byHand reads the faults that a person injected from the history of the run. It returns their names with notes, and
// how many of them were healed.
func (s *seat) byHand() (notes []string, healed int) {
	s.t.Helper()
	h, err := history.Open(filepath.Join(s.out, "runs", "latest", results.HistoryFile))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range h.Ops {
		switch op := &h.Ops[i]; {
		case op.Kind == history.Fault && h.Faults[op.Value].ByHand && op.Outcome == history.OK:
			notes = append(notes, h.Faults[op.Value].Name+": "+h.Notes[op.ID])
		case op.Kind == history.Heal && h.Faults[op.Value].ByHand && op.Outcome == history.OK:
			healed++
		}
	}
	return notes, healed
}

// TestTerminalInjects takes the first fault of the list: it happens, is seen, and stands in the history.
func TestTerminalInjects(t *testing.T) {
	t.Parallel()
	s := alone(t)
	s.sees("proved up to")
	s.types("f")
	s.shows("inject a fault: letters jump, enter, or esc", nil)
	s.types("\r")
	fault := s.shows("inject ([a-z-]+): done; the run is marked interactive", nil)[1]
	s.types("6")
	s.shows("fault +by hand: "+fault+": ", nil)
	s.shows("  INTERACTIVE", nil)
	s.types("q")
	s.leaves(130)
	if r := s.run(); !r.Interactive {
		t.Error("the run is not marked as interactive")
	}
	notes, healed := s.byHand()
	if len(notes) != 1 || !strings.HasPrefix(notes[0], fault+": ") || healed != 1 {
		t.Errorf("%s was injected, the history knows %q, %d healed", fault, notes, healed)
	}
}

// TestTerminalKills kills a node and brings it back.
func TestTerminalKills(t *testing.T) {
	t.Parallel()
	s := alone(t)
	s.sees("proved up to")
	s.types("k")
	s.shows("5 shows the nodes: choose one there with the arrows, then k", nil)
	s.types("5")
	node := s.shows(`(n\d+) +primary +up`, nil)[1]
	s.types("k")
	s.shows("kill "+node+" .k again brings it back.: done; the run is marked interactive", nil)
	// its row, not the legend: who brings it back before that is seen sees no change
	s.shows(node+` +(\S+ +)?down`, nil)
	s.types("k6")
	s.shows(node+" is up", nil)
	s.types("q")
	s.leaves(130)
	if r := s.run(); !r.Interactive {
		t.Error("the run is not marked as interactive")
	}
	notes, healed := s.byHand()
	want := []string{"kill-node:" + node + ": killed " + node, "start-node: started " + node}
	if !slices.Equal(notes, want) || healed != 2 {
		t.Errorf("the history knows %q, %d healed, want %q", notes, healed, want)
	}
}

// TestTerminalChangesTheRate of an open loop, and says why it cannot of a closed one. A gate decides nothing then.
func TestTerminalChangesTheRate(t *testing.T) {
	t.Parallel()
	program := linked(t, "bench")
	s := sit(t, 100, 30, nil, program, "--topology", "single", "--workers", "2", "--warmup", "0s", "--duration", "10m",
		"--rate", "50/s", "--gate", "throughput>1/s", "--out", "runs")
	s.shows("2 workers  1 page  50.0/s", nil)
	s.sees("proved up to") // before that nothing runs whose rate could be changed
	s.types("+")
	s.shows("62.5 visits a second from now on; the run is marked interactive", nil)
	s.types("-")
	s.shows("50.0 visits a second from now on; the run is marked interactive", nil)
	s.types("++6")
	s.shows("2 workers  1 page  78.1/s", nil)
	s.shows(`rate +50.0/s became 62.5/s from \d+\.\d+ s on`, nil)
	s.types("q")
	s.leaves(130)
	s.sees("INCONCLUSIVE  throughput>1/s")
	r := s.run()
	if a := r.Arrivals; !r.Interactive || r.Partial == "" || a.Due == 0 || a.Due != a.Begun+a.Skipped+a.Unfinished {
		t.Errorf("interactive: %v, partial: %q, %+v", r.Interactive, r.Partial, r.Arrivals)
	}

	s = sit(t, 100, 30, nil, program, long...)
	s.sees("proved up to")
	s.types("+")
	s.shows("a closed loop has no rate: its workers go on as soon as they can; --rate 100/s makes an open one", nil)
	s.types("q")
	s.leaves(130)
	if s.run().Interactive {
		t.Error("nothing was done to the run, and it is marked as interactive")
	}
}

// TestTerminalReplay opens a saved run, seeks in it and quits.
func TestTerminalReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// of less, a step is less than a second
	made := exec.Command(linked(t, "verify"), "--topology", "single", "--workers", "2", "--warmup", "0s",
		"--duration", "5s",
		"--fault", "none", "--out", filepath.Join(dir, "runs"), "--tui", "off")
	if out, err := made.CombinedOutput(); err != nil && made.ProcessState.ExitCode() != cli.Inconclusive {
		t.Fatalf("%v\n%s", err, out)
	}
	s := sit(t, 100, 30, nil, linked(t, "bench"), "replay", "latest", "--out", filepath.Join(dir, "runs"))
	s.shows("replay \\d", nil)
	const clock = `PAUSED (\d+\.\d) of (\d+\.\d) s`
	s.types(" " + endKey)
	end := s.shows(clock, func(g []string) bool { return g[1] == g[2] })[2]
	s.types(homeKey + rightKey)
	s.shows(clock, func(g []string) bool { return g[1] == "1.0" && g[2] == end })
	s.types(rightKey)
	s.shows(clock, func(g []string) bool { return g[1] == "2.0" })
	s.types(leftKey)
	s.shows(clock, func(g []string) bool { return g[1] == "1.0" })
	s.types(endKey + " ")
	s.shows("replay "+end+" of "+end+" s", nil)
	s.types("+")
	s.shows("replay x2 "+end, nil)
	s.types("n")
	s.shows("there is no violation after this", nil)
	s.types("q")
	s.leaves(0)
}

// TestTerminalReplayOfNothing leaves the terminal alone.
func TestTerminalReplayOfNothing(t *testing.T) {
	t.Parallel()
	s := sit(t, 100, 30, nil, linked(t, "bench"), "replay", "nowhere")
	_ = s.cmd.Wait()
	s.sees("error: nowhere: no such run")
	if code := s.cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if strings.Contains(s.text(), "\x1b") {
		t.Errorf("the screen was taken: %q", s.text())
	}
}
