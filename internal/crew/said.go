package crew

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// said keeps the standard error output of a worker process.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(s.buf.String())
}

// panic returns the first lines of a panic or fatal error in the output; nil if there was none, or if memory ran out.
func (s *said) panic() []string {
	text := s.text()
	at := aPanic.FindStringIndex(text)
	if at == nil || strings.Contains(text, "out of memory") {
		return nil
	}
	lines := strings.Split(text[at[0]:], "\n")
	return lines[:min(len(lines), mostSaid)]
}

// aPanic matches the first line that the Go runtime prints when it ends a process. A verdict quotes mostSaid lines.
var aPanic = regexp.MustCompile(`(?m)^(panic|fatal error): `)

const mostSaid = 20
