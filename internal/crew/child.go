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

// Command is the hidden argument that turns a command of the suite into a worker process.
const Command = "worker-process"

// boardFD is the file descriptor with which a worker process receives the board.
const boardFD = 3

// Catalogue has the topologies, locks and counters that a command and its worker processes know by name.
type Catalogue struct {
	Topologies []topologies.Spec
	Locks      []locks.Spec
	Counters   []workload.CounterSpec
}

// message is a message from the suite to a worker process. The first has the orders, the second the zero of the run's
// clock, and later ones cut or restore the network. The end of the input means: stop.
type message struct {
	Orders  *Orders        `json:"orders,omitempty"`
	Lock    string         `json:"lock,omitempty"`
	Program *locks.Program `json:"program,omitempty"` // set for a lock that runs in a separate program
	Claims  history.Claims `json:"claims,omitzero"`   // claims of that lock
	Waits   bool           `json:"waits,omitempty"`   // that lock offers a Wait
	Counter string         `json:"counter,omitempty"`
	Zero    int64          `json:"zero,omitempty"`
	Cut     bool           `json:"cut,omitempty"`
	First   int            `json:"first"` // index on the board of the first lane of this process
	All     int            `json:"all"`   // number of workers in all processes
}

// answer is a message from a worker process to the suite. The first says that it is ready, and has the error bound of
// its clock. The last has its report.
type answer struct {
	Ready  bool          `json:"ready"`
	Doubt  time.Duration `json:"doubt_ns"`
	Driver int           `json:"driver,omitempty"` // process ID of the lock's program; 0 = it has none
	Error  string        `json:"error,omitempty"`
	Report *Report       `json:"report,omitempty"`
}

// Main is the main function of a program that starts itself as its worker processes. In a worker process it returns
// the worker's exit code; otherwise it returns that of run.
func Main(ctx context.Context, known Catalogue, run func() int) int {
	switch {
	case len(os.Args) != 2 || os.Args[1] != Command:
		return run()
	case Child(ctx, os.Stdin, os.Stdout, known) != nil:
		return 1
	}
	return 0
}

// Child is the main loop of a worker process. It reads messages from the suite, and writes answers. It ends when its
// input ends, so it does not outlive the suite.
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
	// nil, because the board has no room for the reasons of pauses
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

// resolve looks up the lock and the counter by name.
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

// extra returns an additional lane for the process, such as that of its heartbeat. These lanes follow the workers'
// lanes on the board: the first lane of each process, then the second of each.
func (m *message) extra(t *team, b *board, number int) *history.Lane {
	o := &t.orders
	lane := b.lane(t.crew.Clock, m.All*o.lanes()/o.Shape.Workers+number*o.Shape.Parts+o.Shape.Part, -1)
	lane.Process = int16(o.Process)
	return lane
}

// take gives the team its lanes on the board, and its gate and tempo.
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
