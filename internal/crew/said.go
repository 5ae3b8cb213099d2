package crew

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// said is what a worker process has written to its standard error so far.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
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

// panic is what it has said of a panic in a goroutine: the first lines, nil if it has said nothing of one.
func (s *said) panic() []string {
	text := s.text()
	at := aPanic.FindStringIndex(text)
	if at == nil || strings.Contains(text, "out of memory") {
		return nil
	}
	lines := strings.Split(text[at[0]:], "\n")
	return lines[:min(len(lines), mostSaid)]
}

// aPanic begins what the runtime says of the end of a process; mostSaid bounds its lines in a verdict.
var aPanic = regexp.MustCompile(`(?m)^(panic|fatal error): `)

const mostSaid = 20
