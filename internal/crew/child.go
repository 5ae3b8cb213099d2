package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Command is the hidden argument that makes a command of the suite a worker process.
const Command = "worker-process"

// boardFD is the file descriptor through which a worker process gets the board.
const boardFD = 3

// Catalogue has the locks and counters that a command and its worker processes know by name.
type Catalogue struct {
	Topologies []topologies.Spec
	Locks      []locks.Spec
	Counters   []workload.CounterSpec
}

// message is what the suite sends to a worker process: first its orders, then the zero of the run's clock, then whether
// its network is cut. The end of its input means: stop.
type message struct {
	Orders  *Orders        `json:"orders,omitempty"`
	Lock    string         `json:"lock,omitempty"`
	Program *locks.Program `json:"program,omitempty"` // for a lock that runs in a program of its own
	Claims  history.Claims `json:"claims,omitzero"`   // claims of that lock
	Waits   bool           `json:"waits,omitempty"`   // that lock offers a Wait
	Counter string         `json:"counter,omitempty"`
	Zero    int64          `json:"zero,omitempty"`
	Cut     bool           `json:"cut,omitempty"`
	First   int            `json:"first"` // index on the board of the process's first lane
	All     int            `json:"all"`   // number of workers in all processes together
}

// answer is what a worker process sends to the suite: first that it is ready, with the error bound of its clock, and at
// the end its report.
type answer struct {
	Ready  bool          `json:"ready"`
	Doubt  time.Duration `json:"doubt_ns"`
	Driver int           `json:"driver,omitempty"` // process number of the lock's program, if it has one
	Error  string        `json:"error,omitempty"`
	Report *Report       `json:"report,omitempty"`
}

// Main is the main function of a program that starts itself again as its worker processes. It returns the exit code:
// that of the worker if it was started as one, otherwise that of run.
func Main(ctx context.Context, known Catalogue, run func() int) int {
	switch {
	case len(os.Args) != 2 || os.Args[1] != Command:
		return run()
	case Child(ctx, os.Stdin, os.Stdout, known) != nil:
		return 1
	}
	return 0
}

// Child is the main loop of a worker process: it reads messages from in and writes answers to out. It ends when in
// ends, so that it does not outlive the suite.
func Child(ctx context.Context, in io.Reader, out io.Writer, known Catalogue) error {
	decoder := json.NewDecoder(bufio.NewReader(in))
	encoder := json.NewEncoder(out)
	err := work(ctx, decoder, encoder, known)
	if err != nil {
		return errors.Join(err, encoder.Encode(answer{Error: err.Error()}))
	}
	return nil
}

func work(ctx context.Context, in *json.Decoder, out *json.Encoder, known Catalogue) (err error) {
	var m message
	if err := in.Decode(&m); err != nil || m.Orders == nil {
		return errors.Join(errors.New("no orders"), err)
	}
	if err := m.resolve(known); err != nil {
		return err
	}
	t, err := m.Orders.open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	b, err := mapBoard(os.NewFile(boardFD, "board"), m.Orders.Slots)
	if err != nil {
		return err
	}
	moment, shared, doubt := calibrate()
	if err := out.Encode(answer{Ready: true, Doubt: doubt, Driver: t.driver.PID()}); err != nil {
		return err
	}
	var begin message
	if err := in.Decode(&begin); err != nil {
		return fmt.Errorf("told to end before the beginning: %w", err)
	}
	if err := m.take(t, b, clockAt(m.Orders.Judged, begin.Zero, moment, shared)); err != nil {
		return err
	}
	stop, end := context.WithCancel(ctx)
	defer end()
	go func() {
		for more := (message{}); in.Decode(&more) == nil; more = (message{}) {
			t.line.Cut(more.Cut)
		}
		end()
	}()
	// nil: reasons of pauses are not reported, since the board has no room for texts
	heart := NewHeartbeat(m.extra(t, b, 0), Gap(m.Orders.Shape.TTL), false, nil)
	dead, beats := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(beats)
		heart.Run(dead)
	}()
	report := t.run(ctx, stop)
	close(dead)
	<-beats
	return out.Encode(answer{Report: &report})
}

// resolve looks up the names of lock and counter in the catalogue.
func (m *message) resolve(known Catalogue) error {
	found := m.Orders.Resolve(known, m.Lock, m.Counter)
	if m.Program != nil {
		m.Orders.Lock = locks.Spec{Name: m.Lock, Program: m.Program, Claims: m.Claims, Waits: m.Waits}
		found = m.Orders.Counter.Spec.Name != ""
	}
	if !found {
		return fmt.Errorf("this program has no lock %q or no counter %q", m.Lock, m.Counter)
	}
	return nil
}

// extra returns a lane for the process itself, such as for its heartbeat. These lanes follow those of all workers: the
// first of each process, then the second of each.
func (m *message) extra(t *team, b *board, number int) *history.Lane {
	o := &t.orders
	lane := b.lane(t.crew.Clock, m.All*o.lanes()/o.Shape.Workers+number*o.Shape.Parts+o.Shape.Part, -1)
	lane.Process = int16(o.Process)
	return lane
}

// take gives the team its lanes on the board.
func (m *message) take(t *team, b *board, clock *history.Clock) error {
	plan := &m.Orders.Shape
	lanes := make([]*history.Lane, t.orders.lanes())
	for i := range lanes {
		number := plan.First + i%plan.Workers + i/plan.Workers*m.All
		lanes[i] = b.lane(clock, number, t.orders.writer(number, m.All))
		lanes[i].Process = int16(m.Orders.Process)
	}
	gate, err := b.gate()
	if err != nil {
		return err
	}
	tempo, err := b.tempo()
	if err != nil {
		return err
	}
	if err := t.begin(clock, lanes, gate, tempo); err != nil {
		return err
	}
	t.hearPings(func() *history.Lane { return m.extra(t, b, 1) })
	return nil
}
