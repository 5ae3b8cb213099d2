package driver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// patience is the shortest time after which the suite gives up a program that does not reply to a ping, or does not
// read a line. A call waits for its reply until it is cancelled, and for offPatience after that.
const (
	patience      = 5 * time.Second
	offPatience   = 4 * time.Second
	shortPatience = time.Second
)

// maxNoise is the largest number of lines on a program's standard output that are no messages.
const maxNoise = 10_000

// Process is a running driver program. Its workers may use it concurrently.
type Process struct {
	args     []string
	spec     locks.Spec
	patience time.Duration
	child    *topologies.Child
	input    *os.File
	output   *partial
	errors   *os.File
	tail     tail
	relays   []io.Closer
	closing  sync.Once

	done chan struct{} // closed when it cannot be used any more; Err says why
	read chan struct{} // closed when its output has ended

	mu       sync.Mutex
	err      error
	last     uint64 // ID of the last request
	worker   int    // number of the last worker
	calls    map[uint64]*call
	holds    map[uint64]*hold
	noise    int64
	late     int64             // see Conduct
	lateBy   time.Duration     // see Conduct
	sample   string            // first line that is no message
	failures map[string]int64  // text of an error -> how often it was returned
	broke    history.Breakdown // how the program ended on its own; zero = it did not
	brokeAt  time.Time
	lines    []byte // requests that were not written yet
	writing  bool   // a goroutine is writing, and will write them
}

// call is a request that has no reply yet.
type call struct {
	id     uint64
	op     string
	answer chan message
	hold   *hold // for an Acquire that was successful
	left   bool  // no caller waits for the reply any more
	lost   bool  // for an Acquire: its hold was reported as lost before its reply
}

func newCall(op string, left bool) *call {
	return &call{op: op, answer: make(chan message, 1), left: left}
}

// hold is a lock that was granted.
type hold struct {
	id   uint64
	lost chan struct{}
	told bool // it was reported as lost
}

// tell reports a hold as lost, once.
func (h *hold) tell() {
	if h != nil && !h.told {
		h.told = true
		close(h.lost)
	}
}

// PID is the process ID of the program, and of its process group; 0 if there is none.
func (p *Process) PID() int {
	if p == nil {
		return 0
	}
	return p.child.PID()
}

// Err says why the program cannot be used any more, with the last line of its standard error; nil if the program can be
// used.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Process) failed() bool { return p.Err() != nil }

// about adds the name of the program to an error. It also adds the lines of its output that were no messages: one of
// them may be the answer that is missing.
func (p *Process) about(err error) error {
	err = fmt.Errorf("driver %s: %w", p.args[0], err)
	switch c := p.Conduct(); {
	case c.Noise == 1:
		err = fmt.Errorf("%w; 1 line of its standard output was no message: %s", err, c.Sample)
	case c.Noise > 1:
		err = fmt.Errorf("%w; %d lines of its standard output were no messages, such as %s", err, c.Noise, c.Sample)
	}
	if text := p.tail.text(); text != "" {
		err = fmt.Errorf("%w. Its standard error: %s", err, text)
	}
	return err
}

// fail makes the program unusable: no call gets a reply any more. If fail is called again, the first reason is kept.
func (p *Process) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = p.ending()
	}
	err = p.about(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.done)
	}
}

// ending says how a program that has closed its output has ended.
func (p *Process) ending() error {
	half := ""
	if n := p.output.bytes.Load(); n > 0 {
		half = fmt.Sprintf(", in the middle of a line of %d bytes or more", n)
	}
	select {
	case <-p.child.Ended():
		select {
		case <-p.tail.done:
		case <-time.After(shortPatience): // another process may hold the output open
		}
		p.ownEnd()
		return fmt.Errorf("it ended unexpectedly (%s)%s", p.child.End(), half)
	case <-time.After(shortPatience):
		return fmt.Errorf("it closed its standard output and goes on%s; the protocol needs it until the end", half)
	}
}

// listen reads what the program writes until its output ends. The first message is the greeting.
func (p *Process) listen(greetings chan<- message) {
	defer close(p.read)
	lines, greeted := bufio.NewReaderSize(p.output, maxLine), false // the buffer limits the length of lines
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("it wrote a line of more than %d KiB: %.60q", maxLine>>10, line)
		}
		if err != nil {
			p.fail(err)
			return
		}
		m, err := read(line)
		switch {
		case errors.Is(err, errNoise):
			err = p.noisy(line)
		case err != nil:
			err = fmt.Errorf("its message cannot be understood: %w; it wrote %.120q", err, p.tail.mask(string(line)))
		case !greeted:
			greeted = true
			greetings <- m
		case m.Event != "":
			err = p.event(&m)
		default:
			err = p.answered(&m, line)
		}
		if err != nil {
			p.fail(err)
			return
		}
	}
}

// noisy counts a line that is no message.
func (p *Process) noisy(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noise++; p.noise == 1 {
		p.sample = fmt.Sprintf("%.80q", p.tail.mask(string(line)))
	}
	if p.noise > maxNoise {
		return errors.New("print to standard error what is no message")
	}
	return nil
}

// event handles a message that is not a reply.
func (p *Process) event(m *message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Event != "lost" {
		return fmt.Errorf(`event %q: there is "lost"`, m.Event)
	}
	if m.Hold == 0 || m.Hold > p.last {
		return fmt.Errorf("it reports hold %d as lost, which no acquire had: a hold is named by the id of its acquire",
			m.Hold)
	}
	if c := p.calls[m.Hold]; c != nil {
		c.lost = true // another thread of the program was quicker than the reply
	}
	p.holds[m.Hold].tell() // the lock may have been released before
	return nil
}

// answered passes a reply to the call that waits for it.
func (p *Process) answered(m *message, line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.ID == nil {
		return fmt.Errorf("it wrote a message without id and event: %.80q", line)
	}
	id := *m.ID
	c, ok := p.calls[id]
	switch {
	case !ok && (id > p.last || id == 0):
		return fmt.Errorf("it answered request %d, which was never sent", id)
	case !ok:
		return fmt.Errorf("it answered request %d twice: every request has one answer", id)
	}
	delete(p.calls, id)
	if what := m.mistake(c.op); what != "" {
		return fmt.Errorf("its answer to %s %d cannot be understood: %s; it wrote %.120q", c.op, id, what, line)
	}
	if m.Error != nil && c.op != opCancel {
		p.count(*m.Error)
	}
	switch {
	case !m.OK || c.op != opAcquire:
	case c.left:
		p.giveBack(id)
	default:
		c.hold = &hold{id: id, lost: make(chan struct{})}
		p.holds[id] = c.hold
		if c.lost {
			c.hold.tell()
		}
	}
	c.answer <- *m
	return nil
}

// Limits for error texts that are kept: number and bytes.
const (
	maxFailures = 20
	maxFailure  = 200
)

func (p *Process) count(text string) {
	text = p.tail.mask(text)
	text = text[:min(len(text), maxFailure)]
	if _, known := p.failures[text]; known || len(p.failures) < maxFailures {
		p.failures[text]++
	}
}

// ask sends a request and waits for its reply. An error means that there is no reply, so the outcome is unknown.
func (p *Process) ask(ctx context.Context, m request) (message, *call, error) {
	c := newCall(m.Op, false)
	if err := p.send(m, c); err != nil {
		return message{}, c, err
	}
	a, err := p.await(ctx, c)
	if err != nil && ctx.Err() != nil {
		// the cancellation may come too late, and the program may ignore it
		_ = p.send(request{Op: opCancel, Of: c.id}, newCall(opCancel, true))
		off, cancel := context.WithTimeout(context.WithoutCancel(ctx), offPatience)
		defer cancel()
		if late, none := p.await(off, c); none == nil {
			a, err = late, nil
		}
	}
	if err != nil {
		err = p.leave(c, err)
	}
	return a, c, err
}

func (p *Process) await(ctx context.Context, c *call) (message, error) {
	select {
	case a := <-c.answer:
		return a, nil
	case <-p.done:
		return message{}, errGone
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

// leave gives up a call and returns err. If the reply to the call has granted a lock, or grants it
// later, the lock is released.
func (p *Process) leave(c *call, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.left = true
	if c.hold != nil { // the reply came just now
		delete(p.holds, c.id)
		p.giveBack(c.id)
	}
	return err
}

// giveBack releases a hold whose caller has gone. The caller must hold the mutex.
func (p *Process) giveBack(hold uint64) {
	go func() { _ = p.send(request{Op: opRelease, Hold: hold}, newCall(opRelease, true)) }() // send needs the mutex
}

// errGone is the error of a call to a program that cannot be used any more. It is unknown whether the call was
// executed.
var errGone = fmt.Errorf("the driver is gone: %w", io.ErrUnexpectedEOF)

// Conduct is how the program has behaved apart from its replies.
type Conduct struct {
	Noise    int64            // number of lines on its standard output that are no messages
	Sample   string           // the first such line
	Failures map[string]int64 // text of an error -> how often it was returned
	Late     int64            // number of refusals that came long after the wait that was asked for
	LateBy   time.Duration    // how late the latest of them was
}

// lateAfter is how late a refusal may come, counted from the end of the wait that was asked for.
const lateAfter = time.Second

// waited counts a refusal that came later than asked for: by is the time after the end of the wait. If it is at most
// lateAfter, the refusal is not counted. A slow server may be the reason for a late refusal.
func (p *Process) waited(by time.Duration) {
	if by <= lateAfter {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late, p.lateBy = p.late+1, max(p.lateBy, by)
}

// Conduct returns how the program has behaved so far.
func (p *Process) Conduct() Conduct {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Conduct{Noise: p.noise, Sample: p.sample, Failures: maps.Clone(p.failures), Late: p.late,
		LateBy: p.lateBy}
}
