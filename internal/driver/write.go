package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// send queues a request for writing. Each write contains all requests that workers have queued before it. A write for
// each request would wake the program each time, which costs more than the library's own messages.
func (p *Process) send(m request, c *call) error {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return errGone
	}
	m.ID, c.id = p.last+1, p.last+1
	lines, err := m.line(p.lines)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	p.last++
	p.lines, p.calls[m.ID] = lines, c
	first := !p.writing
	p.writing = true
	p.mu.Unlock()
	if !first {
		return nil
	}
	runtime.Gosched() // workers whose replies came together send requests together
	return p.write()
}

// write writes until the queue is empty. A program that does not read must not block the suite.
func (p *Process) write() error {
	var spare []byte
	for {
		p.mu.Lock()
		lines := p.lines
		p.lines, p.writing = spare, len(lines) > 0
		p.mu.Unlock()
		if len(lines) == 0 {
			return nil
		}
		err := p.input.SetWriteDeadline(time.Now().Add(p.patience))
		if err == nil {
			_, err = p.input.Write(lines)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = fmt.Errorf("it has not read its standard input for %s", p.patience)
		case errors.Is(err, syscall.EPIPE):
			err = io.EOF
		}
		if err != nil {
			p.fail(err)
			return errGone
		}
		spare = lines[:0]
	}
}

func (m *request) line(b []byte) ([]byte, error) {
	seldom := m.Sites != nil || m.Keys != nil || m.Mode != "" || m.Permits != 0 || m.Topology != ""
	if seldom || !plain(m.Key) || !plain(m.Op) {
		text, err := json.Marshal(m)
		return append(append(b, text...), '\n'), err
	}
	number := func(name string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(b, name...), n, 10)
		}
	}
	number(`{"id":`, int64(m.ID))
	b = append(append(append(b, `,"op":"`...), m.Op...), '"')
	number(`,"worker":`, int64(m.Worker))
	if m.Key != "" {
		b = append(append(append(b, `,"key":"`...), m.Key...), '"')
	}
	number(`,"ttl_ms":`, m.TTL)
	if m.Wait != nil {
		b = strconv.AppendInt(append(b, `,"wait_ms":`...), *m.Wait, 10)
	}
	number(`,"hold":`, int64(m.Hold))
	number(`,"of":`, int64(m.Of))
	return append(b, "}\n"...), nil
}

// plain tells whether JSON writes a text without escapes.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
