package driver

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"hammerlock/topologies"
)

// tailSize is how many bytes of a program's standard error are kept; mostSaid is how many lines a verdict quotes.
const (
	tailSize = 4 << 10
	mostSaid = 20
)

// tail keeps the end of a program's standard error, without passwords.
type tail struct {
	done chan struct{} // closed when the output has ended

	mu      sync.Mutex
	bytes   []byte
	secrets topologies.Secrets
	line    []byte    // the current, incomplete line
	alarm   []string  // the first line about a panic, and the lines after it
	at      time.Time // when that first line came
}

// alarms is the pattern of the lines by which runtimes report a panic, or an exception that was not caught.
var alarms = regexp.MustCompile(
	`^(panic|fatal error): |^thread '.*' panicked at |^Exception in thread |UnhandledPromiseRejection`)

// look goes through new output, line by line.
func (t *tail) look(b []byte) {
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		if t.line = append(t.line, line...); !ended {
			t.line = t.line[:min(len(t.line), tailSize)]
			return
		}
		switch {
		case t.alarm == nil && alarms.Match(t.line):
			t.at = time.Now()
			fallthrough
		case t.alarm != nil && len(t.alarm) < mostSaid:
			t.alarm = append(t.alarm, string(t.line))
		}
		t.line, b = t.line[:0], rest
	}
}

// alarmed returns what the program printed about a panic, and when; nil if it printed nothing.
func (t *tail) alarmed() ([]string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clean(t.alarm), t.at
}

func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.bytes)), "\n")
	return t.clean(lines[max(len(lines)-mostSaid, 0):])
}

func (t *tail) clean(lines []string) (all []string) {
	for _, l := range lines {
		all = append(all, strings.ToValidUTF8(t.secrets.Hide(l), "?"))
	}
	return all
}

func (t *tail) take(r io.Reader) {
	defer close(t.done)
	_, _ = io.Copy(t, r) // whatever the error, the output has ended
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(b)
	t.bytes = append(t.bytes, b...)
	if over := len(t.bytes) - tailSize; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(b), nil
}

// secret adds a word that is not shown.
func (t *tail) secret(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.secrets.Add(word)
}

func (t *tail) mask(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.secrets.Hide(text)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(t.secrets.Hide(string(t.bytes)), "?"))
}
