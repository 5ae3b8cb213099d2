package explore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/history"
)

// thePanic is the checker that a lock violates that panics, and the cause.
const thePanic = "panic"

// caught is deferred by what calls a lock. The client of a lock that panics counts as dead, and the schedule ends.
func (c *calledLock) caught(call string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	if err != nil {
		*err = fmt.Errorf("%s: %v", call, p)
	}
	c.w.panics(c.client, call == "Close", fmt.Sprintf("%s by c%d panics: %v%s", call, c.client, p, culprit()))
}

// panics takes the first panic of a client down. After the end all connections break, which is nobody's doing: then only a lock
// that is closed must not panic.
func (w *world) panics(client int, last bool, what string) {
	w.mu.Lock()
	if last || !w.ended {
		w.panicked[client] = cmp.Or(w.panicked[client], what)
	}
	w.mu.Unlock()
	signal(w.arrived)
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

// panicVerdict is the verdict on a schedule in which the lock panicked.
func panicVerdict(what string, h *history.History) checker.Verdict {
	v := checker.Verdict{Checker: thePanic, Status: checker.Fail, Cause: thePanic, Violations: 1, Summary: what, Story: []string{what}}
	if n := len(h.Ops); n > 0 {
		v.Evidence = h.Ops[n-1:]
	}
	return v
}

// What a process says of its schedules on its standard error, for the case that it does not survive one: a lock may panic in a
// goroutine of its own, where nobody else can catch it.
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
	_, _ = o.log.Write(append(text, '\n')) // nobody may be there to hear it
}

// tail keeps the end of what was written: the schedule that a process was at, and what it died of.
type tail struct {
	bytes.Buffer
	schedules int
}

const mostTail = 1 << 20

func (t *tail) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte(beginsSchedule)) {
		t.Reset()
	}
	t.schedules += bytes.Count(b, []byte(beginsSchedule+"\n"))
	if t.Len() < mostTail {
		t.Buffer.Write(b)
	}
	return len(b), nil
}

// ourOwn begins the methods of this package: a panic in one of them is no lock's.
const ourOwn = "hammerlock/explore.(*"

// panicked is what an exploration found whose process died of a panic; nil if it died of something else.
func (t *tail) panicked() *Found {
	text := t.String()
	at := strings.Index(text, "\npanic: ")
	if at < 0 {
		return nil
	}
	parts := strings.SplitN(strings.TrimSpace(text[at:]), "\n\n", 3) // what, the goroutine, all others
	if len(parts) < 2 || strings.Contains(parts[1], "\n"+ourOwn) {
		return nil
	}
	dump := slices.Concat(strings.Split(parts[0], "\n"), strings.Split(parts[1], "\n"))
	f := &Found{Checker: thePanic, Cause: thePanic, Number: t.schedules, Trace: []string{"  the trace ended with the process; the deviations were:"}}
	before := text[:at]
	before = before[max(strings.LastIndex(before, beginsSchedule), 0):]
	for line := range strings.Lines(before) {
		var c Choice
		if rest, ok := strings.CutPrefix(line, takesDeviation); ok && json.Unmarshal([]byte(rest), &c) == nil {
			f.Schedule = append(f.Schedule, c)
			f.Trace = append(f.Trace, "* "+c.What)
		}
		if strings.TrimSpace(line) == endsSchedule {
			f.Trace = append(f.Trace, "* all connections break: the schedule has ended")
		}
	}
	f.Summary = "a goroutine of the lock panics: " + strings.TrimPrefix(dump[0], "panic: ")
	f.Trace = append(f.Trace, dump[:min(len(dump), 16)]...)
	f.Verdicts = []checker.Verdict{{Checker: thePanic, Status: checker.Fail, Cause: thePanic, Violations: 1, Summary: f.Summary, Story: slices.Clone(f.Trace)}}
	return f
}
