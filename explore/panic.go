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

// caught recovers a panic of the lock; it is deferred in each call of the lock. The call then returns an error.
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

// panics records the first panic of a client's lock. At the end of a schedule all connections break, which may cause
// panics for which the lock is not to blame. From then on, a panic counts only if it comes from the lock's Close,
// that is, if last is true.
func (w *world) panics(client int, last bool, what string) {
	w.mu.Lock()
	if last || !w.ended {
		w.panicked[client] = cmp.Or(w.panicked[client], what)
	}
	w.mu.Unlock()
	signal(w.arrived)
}

// hangs records the first lock call that does not return although its context has ended and all connections are
// broken.
func (w *world) hangs(all []history.Hung) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range all {
		if h.GivenUp > 0 && w.hung == nil {
			w.hung = &h
		}
	}
}

// panicked returns the text of the first panic of a client that has not crashed; empty if there was none.
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

// culprit returns the function, the file and the line that panicked; empty if they are unknown.
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

// errLeft means that a goroutine of the lock never ends, so the virtual time of a schedule cannot end.
var errLeft = errors.New("a goroutine of the lock does not end when the lock is closed")

// inBubble runs a function in virtual time. synctest panics if goroutines are left at the end, and only a lock can
// leave some. Then inBubble returns errLeft.
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

// lefts returns the names of the functions in which the remaining goroutines of a schedule are.
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

// waiting matches the lines of a stack trace that are not functions of a lock or library.
var waiting = regexp.MustCompile(`^(\t|created by |(runtime|time|sync|context|internal/\w+)\.)`)

// An exploring process writes lines with these prefixes to standard error, to show which schedule it runs. If a lock
// panics in a goroutine of its own, nothing can recover the panic and the process ends. From these lines its parent
// then knows the schedule.
const (
	beginsSchedule = "explore: schedule"
	takesDeviation = "explore: deviation "
	endsSchedule   = "explore: end"
)

// say writes a line with one of these prefixes, and with the choice c unless it is nil.
func (o *Options) say(prefix string, c *Choice) {
	if o.log == nil {
		return
	}
	text := []byte(prefix)
	if c != nil {
		choice, _ := json.Marshal(c) // an error is impossible for this type
		text = append(text, choice...)
	}
	_, _ = o.log.Write(append(text, '\n')) // an error does not matter: there may be no reader
}

// tail keeps the end of a process's output: the last schedule, and how the process ended.
type tail struct {
	text      bytes.Buffer // not embedded, because ReadFrom of an embedded Buffer would bypass Write
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

// last returns the last line of the output, or the runtime's error if there is one.
func (t *tail) last() string {
	text := strings.TrimSpace(t.text.String())
	if at := dump.FindStringIndex(text); at != nil {
		text, _, _ = strings.Cut(text[at[0]:], "\n")
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ourOwn is the beginning of the names of this package's methods. A panic in one of them is not the lock's fault.
const ourOwn = "hammerlock/explore.(*"

// dump matches the beginning of the runtime's output when a process ends.
var dump = regexp.MustCompile(`(?m)^(panic|fatal error): `)

// mostOfDump is the largest number of lines that a counterexample keeps of a dying process's output.
const mostOfDump = 16

// died returns the counterexample if the process ended during a schedule. It returns nil if the lock is not to blame:
// the process ended before any schedule, by a signal, out of memory, or by a panic in this package.
func (t *tail) died(how error) *Found {
	said, rest := t.text.String(), ""
	if at := dump.FindStringIndex(said); at != nil {
		said, rest = said[:at[0]], strings.TrimSpace(said[at[0]:])
	}
	parts := strings.SplitN(rest, "\n\n", 3) // the panic, the goroutine that panicked, all others
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
	checker.Advise(f.Verdicts)
	return f
}
