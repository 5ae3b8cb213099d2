package explore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"hammerlock/checker"
	"hammerlock/history"
)

// caught is deferred by what calls a lock. The client of a lock that panics counts as dead, and the schedule ends.
func (c *calledLock) caught(call string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	if err != nil {
		*err = fmt.Errorf("%s: %v", call, p)
	}
	c.w.panics(c.client, call == "Close", fmt.Sprintf("%s by w%02d panics: %v%s", call, c.client, p, culprit()))
}

// panics takes the first panic of a client down. After the end all connections break, which no client did: then only a
// lock that is closed must not panic.
func (w *world) panics(client int, last bool, what string) {
	w.mu.Lock()
	if last || !w.ended {
		w.panicked[client] = cmp.Or(w.panicked[client], what)
	}
	w.mu.Unlock()
	signal(w.arrived)
}

// hangs takes the first call down that does not return although its context has ended and all connections are broken.
func (w *world) hangs(all []history.Hung) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range all {
		if h.GivenUp > 0 && w.hung == nil {
			w.hung = &h
		}
	}
}

// panicked returns what panicked in a client that lives; empty if nothing did.
func (s *schedule) panicked() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for client, what := range s.w.panicked {
		if what != "" && !s.crashed[client] {
			return what
		}
	}
	return ""
}

// culprit is where the code stands that the runtime has found to panic.
func culprit() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for began := false; ; {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, "runtime.")
		if began && !own {
			return fmt.Sprintf(", in %s (%s:%d)", f.Function, filepath.Base(f.File), f.Line)
		}
		if began = began || f.Function == "runtime.gopanic"; !more {
			return ""
		}
	}
}

// errLeft says that goroutines of a lock never end, so that the time of a schedule cannot end either.
var errLeft = errors.New("a goroutine of the lock does not end when the lock is closed")

// inBubble runs what has a time of its own. synctest panics if such a time cannot end, and no lock can cause that
// otherwise.
func inBubble(t *testing.T, f func(*testing.T)) (err error) {
	defer func() {
		p := recover()
		if dead, is := p.(error); is && strings.HasPrefix(dead.Error(), "deadlock: ") {
			err = fmt.Errorf("%w: it is in %s", errLeft, lefts())
		} else if p != nil {
			panic(p)
		}
	}()
	synctest.Test(t, f)
	return nil
}

// lefts names the functions, nearest to what waits, that goroutines of a schedule are left in.
func lefts() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var names []string
	for dump := range strings.SplitSeq(string(all), "\n\n") {
		state, calls, _ := strings.Cut(dump, "\n")
		if !strings.Contains(state, "synctest bubble") {
			continue
		}
		for call := range strings.Lines(calls) {
			if end := strings.LastIndexByte(call, '('); end > 0 && !waiting.MatchString(call) {
				names = append(names, call[:end])
				break
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// waiting are the lines of a goroutine that are no function of a lock or library.
var waiting = regexp.MustCompile(`^(\t|created by |(runtime|time|sync|context|internal/\w+)\.)`)

// Lines by which a process tells of its schedules on its standard error, in case it does not survive one: a lock may
// panic in a goroutine of its own, where no other can catch it.
const (
	beginsSchedule = "explore: schedule"
	takesDeviation = "explore: deviation "
	endsSchedule   = "explore: end"
)

// say writes such a line.
func (o *Options) say(prefix string, c *Choice) {
	if o.log == nil {
		return
	}
	text := []byte(prefix)
	if c != nil {
		choice, _ := json.Marshal(c) // it has no parts that cannot be written
		text = append(text, choice...)
	}
	_, _ = o.log.Write(append(text, '\n')) // there may be no reader
}

// tail keeps the end of what was written: the schedule that a process was at, and what it died of.
type tail struct {
	text      bytes.Buffer // not embedded: it would be filled past Write
	schedules int
}

const mostTail = 1 << 20

func (t *tail) Write(b []byte) (int, error) {
	n, begins := len(b), []byte(beginsSchedule+"\n")
	t.schedules += bytes.Count(b, begins)
	if at := bytes.LastIndex(b, begins); at >= 0 {
		t.text.Reset()
		b = b[at:]
	}
	if t.text.Len() < mostTail {
		t.text.Write(b)
	}
	return n, nil
}

// last is what it ends with: the reason, if the runtime gives one.
func (t *tail) last() string {
	text := strings.TrimSpace(t.text.String())
	if at := dump.FindStringIndex(text); at != nil {
		text, _, _ = strings.Cut(text[at[0]:], "\n")
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ourOwn begins the methods of this package: a panic in one of them is no lock's.
const ourOwn = "hammerlock/explore.(*"

// dump begins what the runtime says of the end of a process.
var dump = regexp.MustCompile(`(?m)^(panic|fatal error): `)

// mostOfDump is how many lines of it are kept.
const mostOfDump = 16

// died is what an exploration found whose process ended within a schedule: what its lock did there, up to the end. It
// is nil where that is none of the lock's doing: before any schedule, by a signal, for want of memory, or in this
// package.
func (t *tail) died(how error) *Found {
	said, rest := t.text.String(), ""
	if at := dump.FindStringIndex(said); at != nil {
		said, rest = said[:at[0]], strings.TrimSpace(said[at[0]:])
	}
	parts := strings.SplitN(rest, "\n\n", 3) // what, the goroutine, all others
	var exit *exec.ExitError
	killed := errors.As(how, &exit) && exit.ExitCode() < 0
	if t.schedules == 0 || killed || strings.Contains(parts[0], "out of memory") || len(parts) > 1 &&
		strings.Contains(parts[1], "\n"+ourOwn) {
		return nil
	}
	f := &Found{
		Number: t.schedules, Summary: fmt.Sprintf("the lock ends its process: %v", how),
		Trace: []string{"  the trace ended with the process; the deviations were:"},
	}
	for line := range strings.Lines(said) {
		var c Choice
		switch what, deviates := strings.CutPrefix(line, takesDeviation); {
		case deviates && json.Unmarshal([]byte(what), &c) == nil:
			f.Schedule = append(f.Schedule, c)
			f.Trace = append(f.Trace, "* "+c.What)
		case strings.TrimSpace(line) == endsSchedule:
			f.Trace = append(f.Trace, "* all connections break: the schedule has ended")
		case len(strings.TrimSpace(line)) > 0 && strings.TrimSpace(line) != beginsSchedule && len(f.Trace) < mostOfDump:
			f.Trace = append(f.Trace, "  it writes: "+strings.TrimSpace(line))
		}
	}
	if rest != "" {
		lines := slices.Concat(strings.Split(parts[0], "\n"),
			strings.Split(strings.Join(parts[1:min(len(parts), 2)], ""), "\n"))
		f.Summary = strings.Replace(lines[0], "panic: ", "a goroutine of the lock panics: ", 1)
		f.Trace = append(f.Trace, lines[:min(len(lines), mostOfDump)]...)
	}
	v := checker.BrokeDown(&history.Breakdown{Text: f.Summary, Said: slices.Clone(f.Trace)}, nil)
	f.Checker, f.Cause, f.Verdicts = v.Checker, v.Cause, []checker.Verdict{v}
	return f
}
