package driver

import (
	"io"
	"strings"
	"sync"
)

// tailSize is how much is kept of what a program writes to its standard error.
const tailSize = 4 << 10

// tail is the end of what a program wrote to its standard error. Passwords are not shown.
type tail struct {
	done chan struct{} // closed when there is no more

	mu      sync.Mutex
	bytes   []byte
	secrets []string
}

func (t *tail) take(r io.Reader) {
	defer close(t.done)
	_, _ = io.Copy(t, r) // whatever ends it, there is no more
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	if over := len(t.bytes) - tailSize; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(b), nil
}

// secret names a word that is not shown.
func (t *tail) secret(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if word != "" {
		t.secrets = append(t.secrets, word)
	}
}

// mask takes the secrets out of a text.
func (t *tail) mask(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.masked(text)
}

func (t *tail) masked(text string) string {
	for _, s := range t.secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// text is what there is so far.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(t.masked(string(t.bytes)), "?"))
}
