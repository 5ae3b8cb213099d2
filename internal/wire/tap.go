package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Source is a server whose replication stream a tap reads. The user needs the rights to PSYNC, REPLCONF and INFO.
type Source struct {
	Server         int // number of the server in effects and events
	Dial           Dial
	User, Password string
}

// ErrCounted means that a server has min-replicas-to-write set. It would count the tap as a replica.
var ErrCounted = errors.New("the server refuses writes when too few replicas are connected (min-replicas-to-write), " +
	"and would count the tap as one")

// hiddenPort is the port that a tap announces to the server. It is invalid, so sentinels ignore the tap.
const hiddenPort = "65536"

const (
	maxInfo     = 1 << 20
	ackEvery    = time.Second
	retryFirst  = 20 * time.Millisecond
	retryMost   = time.Second
	handshaking = 5 * time.Second
	// the longest time without a byte: servers send newlines during a snapshot, and pings every
	// repl-ping-replica-period seconds
	silence = time.Minute
)

// Tap reads a server's replication stream as a replica does, but stores no data. It never acknowledges data: WAIT does
// not count it, and no failover chooses it. Sentinels and cluster nodes ignore it.
//
// While a tap is connected, the server's INFO and ROLE list it as a replica with an invalid port. A server that shuts
// down waits for the tap for shutdown-timeout seconds (10), so close the tap first. When the stream starts, the server
// waits for repl-diskless-sync-delay seconds (5), and forks to make a snapshot.
type Tap struct {
	run    *Run
	source Source
	cancel context.CancelFunc
	done   chan struct{}

	conn    net.Conn
	stop    func() bool // ends the watching of the context
	in      *flow
	id      string // replication ID
	offset  int64  // offset after the last command
	replica bool   // the server is a replica
	origin  Origin
	db      int
	tx      int64
	inside  bool // within MULTI..EXEC
	last    Effect
	sending sync.Mutex
}

// Tap opens a tap. It returns when all later effects will be seen, or when the context ends. The tap reads and
// reconnects until Close.
func (r *Run) Tap(ctx context.Context, s Source) (*Tap, error) {
	t := &Tap{run: r, source: s, done: make(chan struct{})}
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	err := t.connect(following)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go t.follow(following)
	return t, nil
}

func (t *Tap) Close() error {
	t.cancel()
	<-t.done
	return nil
}

func (t *Tap) event(e Event) {
	e.Server, e.At, e.Replica = t.source.Server, t.run.Clock.Stamp(), t.replica
	t.run.Sink.Event(e)
}

// follow reads the stream and reconnects until Close ends the context. Each break of the stream is reported as an
// event. An end by Close is not reported.
func (t *Tap) follow(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		err := t.read(ctx)
		if ctx.Err() != nil {
			return
		}
		t.event(Event{Kind: TapLost, Text: err.Error()})
		for pause := retryFirst; ctx.Err() == nil && t.connect(ctx) != nil; pause = min(2*pause, retryMost) {
			wait(ctx.Done(), pause)
		}
	}
}

// connect starts the stream. It continues where the stream ended if the server still has that part.
func (t *Tap) connect(ctx context.Context) error {
	dialling, cancel := context.WithTimeout(ctx, handshaking)
	defer cancel()
	conn, err := t.source.Dial(dialling)
	if err != nil {
		return err
	}
	t.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	t.conn, t.in = conn, newFlow(patient{conn}, io.Discard)
	if err := t.handshake(); err != nil {
		t.stop()
		return errors.Join(err, conn.Close())
	}
	return nil
}

// ask sends a command and returns its reply.
func (t *Tap) ask(args ...string) (string, error) {
	if err := t.send(args...); err != nil {
		return "", err
	}
	answer, err := t.line()
	if err == nil && strings.HasPrefix(answer, "-") {
		err = fmt.Errorf("%s: %s", args[0], answer[1:])
	}
	if err != nil || !strings.HasPrefix(answer, "$") {
		return answer, err
	}
	size, err := number([]byte(answer[1:]))
	if err != nil {
		return "", err
	}
	var text []byte
	err = t.in.each(min(size, maxInfo), func(piece []byte) { text = append(text, piece...) })
	return string(text), err
}

func (t *Tap) send(args ...string) error {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	t.sending.Lock()
	defer t.sending.Unlock()
	_, err := t.conn.Write(b)
	return err
}

// line reads a line. It skips the empty lines that a server sends during a snapshot.
func (t *Tap) line() (string, error) {
	for {
		b, err := t.in.line(maxInline)
		if line := strings.TrimRight(string(b), "\r"); line != "" || err != nil {
			return line, err
		}
	}
}

func (t *Tap) handshake() error {
	login := []string{"AUTH", t.source.User, t.source.Password}
	if t.source.User == "" {
		login = []string{"AUTH", t.source.Password}
	}
	if t.source.Password != "" {
		if _, err := t.ask(login...); err != nil {
			return err
		}
	}
	info, err := t.ask("INFO", "replication")
	if err != nil {
		return err
	}
	t.replica, t.origin = strings.Contains(info, "\nrole:slave"), originOf(info)
	if strings.Contains(info, "\nmin_slaves_good_slaves:") {
		return ErrCounted
	}
	for _, args := range [][]string{{"listening-port", hiddenPort}, {"capa", "eof", "capa", "psync2"}} {
		if _, err := t.ask(append([]string{"REPLCONF"}, args...)...); err != nil {
			return err
		}
	}
	from := []string{"PSYNC", "?", "-1"}
	if t.id != "" {
		from = []string{"PSYNC", t.id, strconv.FormatInt(t.offset+1, 10)}
	}
	answer, err := t.ask(from...)
	if err != nil {
		return err
	}
	return t.start(strings.Fields(answer))
}

// originOf parses the reply to INFO replication.
func originOf(info string) (o Origin) {
	for line := range strings.Lines(info) {
		switch name, text, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "master_replid":
			o.History = text
		case "master_replid2":
			if strings.Trim(text, "0") != "" { // zeros mean that there is none
				o.Before = text
			}
		case "second_repl_offset":
			next, _ := strconv.ParseInt(text, 10, 64)
			o.Upto = next - 1
		}
	}
	return o
}

// start parses the reply to PSYNC, and skips the snapshot if there is one.
func (t *Tap) start(answer []string) error {
	switch {
	case len(answer) > 0 && answer[0] == "+CONTINUE":
		if len(answer) > 1 {
			t.id = answer[1]
		}
		t.event(Event{Kind: TapBegan, Origin: t.origin})
		return nil
	case len(answer) < 3 || answer[0] != "+FULLRESYNC":
		return fmt.Errorf("PSYNC: %s", strings.Join(answer, " "))
	}
	offset, err := strconv.ParseInt(answer[2], 10, 64)
	if err != nil {
		return fmt.Errorf("PSYNC: %w", err)
	}
	if err := t.skipSnapshot(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	began := t.id != ""
	t.event(Event{Kind: TapBegan, Missing: began, Another: began && (answer[1] != t.id || offset < t.offset),
		Origin: t.origin})
	t.id, t.offset, t.inside = answer[1], offset, false
	return nil
}

// skipSnapshot skips a snapshot. The server announces either its size or its end mark.
func (t *Tap) skipSnapshot() error {
	line, err := t.line()
	if err != nil {
		return err
	}
	mark, marked := strings.CutPrefix(line, "$EOF:")
	if !marked {
		size, err := number([]byte(strings.TrimPrefix(line, "$")))
		if err != nil {
			return err
		}
		return t.in.skip(size)
	}
	for f := t.in; ; {
		if err := f.need(len(mark)); err != nil {
			return err
		}
		if i := bytes.Index(f.buf[f.seen:f.end], []byte(mark)); i >= 0 {
			f.seen += i + len(mark)
			return t.acknowledge() // the server starts the stream only after an acknowledgement
		}
		f.seen = f.end - len(mark) + 1
	}
}

// patient is a connection whose reads have a timeout.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(silence))
	return p.Conn.Read(b)
}

// acknowledge tells the server that the tap is alive and has no data.
func (t *Tap) acknowledge() error { return t.send("REPLCONF", "ACK", "0") }

// read passes the stream's effects to the sink until the stream breaks.
func (t *Tap) read(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var acks sync.WaitGroup
	defer acks.Wait()
	defer cancel()
	defer func() {
		t.stop()
		_ = t.conn.Close()
	}()
	acks.Go(func() {
		for t.acknowledge() == nil && wait(ctx.Done(), ackEvery) {
		}
	})
	var c command
	for {
		t.in.done()
		from := t.in.place()
		if err := c.read(t.in); err != nil {
			return err
		}
		t.offset += t.in.place() - from
		t.effect(c.args)
	}
}

func (t *Tap) effect(args []string) {
	if args == nil {
		return
	}
	e := &t.last
	*e = Effect{Server: t.source.Server, At: t.in.stamp(t.run.Clock), Offset: t.offset, DB: t.db, Args: args}
	switch args[0] {
	case "PING", "REPLCONF":
		return
	case "SELECT":
		if db, err := strconv.Atoi(args[min(1, len(args)-1)]); err == nil {
			t.db = db
		}
		return
	case "MULTI":
		t.inside, t.tx = true, t.tx+1
		return
	case "EXEC":
		t.inside = false
		return
	}
	if t.inside {
		e.Tx = t.tx
	}
	t.run.Sink.Effect(e)
}
