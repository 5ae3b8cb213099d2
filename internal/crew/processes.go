package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

type Process struct {
	Number  int
	part    int // number of the process in the crew
	Workers []int32
	Lanes   []int // indices of the lanes that it writes

	elsewhere func(syscall.Signal) error // signals a process on another machine; nil = it runs on this machine
	Agent     *Agent                     // machine of the process; nil = this machine

	cmd    *exec.Cmd
	driver int // process group of the lock's program; 0 = it has none
	input  io.WriteCloser
	output *json.Decoder
	stderr said

	killed atomic.Bool
	dead   atomic.Bool
}

// Agent is a machine with workers, in the form that faults need.
type Agent struct {
	Name  string
	Kill  func() error              // kills the agent and its worker process
	Pause func(time.Duration) error // pauses both for the given time
	Cut   func(cut bool) error      // cuts the network between its workers and all servers; false restores it
}

// Elsewhere returns a worker process on another machine. The argument signal sends a signal to it.
func Elsewhere(number int, workers []int32, signal func(syscall.Signal) error, agent *Agent) *Process {
	return &Process{Number: number, Workers: workers, elsewhere: signal, Agent: agent}
}

// Processes is a Crew in child processes.
type Processes struct {
	orders  Orders
	share   Share
	all     []*Process
	board   *board
	session Session
	doubt   time.Duration // error bound of this process's clock
	moment  time.Time
	shared  int64
}

// Spawn starts a command that ends when the suite does.
type Spawn func(*exec.Cmd) error

// readyTimeout is the longest time that a worker process may take to become ready.
const readyTimeout = 20 * time.Second

// Spread makes a Crew of n processes. Each process runs a part of the workers; in an open loop, it makes every n-th
// visit.
func Spread(ctx context.Context, o Orders, n int, spawn Spawn) (Crew, error) {
	p, err := SpreadShare(ctx, o, Share{0, n, n}, spawn)
	if err != nil {
		return nil, err // SpreadShare has closed it
	}
	return p, nil
}

// Share tells which processes of a crew run on this machine: Count processes, beginning with process First. The whole
// crew has Of processes, numbered from 0.
type Share struct{ First, Count, Of int }

// Workers returns the range of workers in the share. The range ends before the worker with the number "to".
func (s Share) Workers(all int) (from, to int) {
	return all * s.First / s.Of, all * (s.First + s.Count) / s.Of
}

// SpreadShare is like Spread, but only starts the processes of a Share. Orders.Process is the number of the first
// process of all shares.
func SpreadShare(ctx context.Context, o Orders, share Share, spawn Spawn) (_ *Processes, err error) {
	lanes := o.lanes()
	o.Slots = laneSlots(lanes)
	p := &Processes{orders: o, share: share}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.board, err = makeBoard(o.Lanes(share.Of), o.Slots); err != nil {
		return nil, err
	}
	if p.session.Gate, err = p.board.gate(); err != nil {
		return nil, err
	}
	if p.session.Tempo, err = p.board.tempo(); err != nil {
		return nil, err
	}
	p.moment, p.shared, p.doubt = calibrate()
	for i := range share.Count {
		child, err := p.start(share.First+i, spawn)
		if err != nil {
			return nil, fmt.Errorf("start worker process %d: %w", share.First+i, err)
		}
		p.all = append(p.all, child)
	}
	return p, p.ready(ctx, lanes)
}

func (p *Processes) start(i int, spawn Spawn) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := &Process{Number: p.orders.Process + i, part: i,
		cmd: exec.Command(self, append(slices.Clone(p.orders.Before), Command)...)}
	child.cmd.Stderr = &child.stderr
	child.cmd.ExtraFiles = []*os.File{p.board.file}
	if child.input, err = child.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := child.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	child.output = json.NewDecoder(output)
	if err := spawn(child.cmd); err != nil {
		return nil, err
	}
	o, all := p.orders, p.orders.Shape.Workers
	from, to := Share{i, 1, p.share.Of}.Workers(all)
	child.Workers = o.Numbers(from, to)
	o.Process, o.Shape.First, o.Shape.Workers, o.Shape.Part, o.Shape.Parts = child.Number, from, to-from, i, p.share.Of
	return child, json.NewEncoder(child.input).Encode(message{
		Orders: &o, Lock: o.Lock.Name, Program: o.Lock.Program, Claims: o.Lock.Claims, Waits: o.Lock.Waits,
		Counter: o.Counter.Spec.Name, First: from, All: all,
	})
}

// ready waits until every process is ready. The clocks of two processes differ by at most the sum of their error
// bounds.
func (p *Processes) ready(ctx context.Context, lanes int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		for _, c := range p.all {
			_ = c.cmd.Process.Kill() // an error does not matter: the process may have ended
		}
	})()
	var worst [2]time.Duration
	for _, c := range p.all {
		var a answer
		if err := c.output.Decode(&a); err != nil || !a.Ready {
			return c.complaint(a, c.end(err))
		}
		c.driver = a.Driver
		if worst[0] = max(worst[0], a.Doubt); worst[0] > worst[1] {
			worst[0], worst[1] = worst[1], worst[0]
		}
	}
	p.session.Slack = worst[0] + worst[1] + p.doubt
	extras := p.orders.extras(1)
	for i := range lanes + extras*p.share.Of {
		p.session.Lanes = append(p.session.Lanes, p.board.lane(nil, i, p.orders.writer(i, p.orders.Shape.Workers)))
	}
	for _, c := range p.all {
		for n := range lanes {
			if slices.Contains(c.Workers, int32(n%p.orders.Shape.Workers)) {
				c.Lanes = append(c.Lanes, n)
			}
		}
		for n := range extras {
			c.Lanes = append(c.Lanes, lanes+n*p.share.Of+c.part)
		}
	}
	return nil
}

// endTimeout is the longest time that a process may run after it has closed its output.
const endTimeout = 10 * time.Second

// end waits for a process whose output has ended, and kills it after endTimeout. If the process failed before that, end
// returns how it failed; otherwise it returns the argument err.
func (c *Process) end(err error) error {
	timer := time.AfterFunc(endTimeout, func() { _ = c.Kill() })
	waited := c.cmd.Wait()
	if timer.Stop() && waited != nil {
		return fmt.Errorf("it ended unexpectedly: %w", waited)
	}
	return err
}

func (c *Process) complaint(a answer, err error) error {
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	if text := c.stderr.text(); text != "" {
		err = fmt.Errorf("%w; it said: %s", err, text)
	}
	return fmt.Errorf("worker process %d: %w", c.Number, err)
}

func (p *Processes) Begin(chan<- struct{}) (*Session, error) {
	return p.BeginAt(p.shared + int64(time.Since(p.moment)))
}

// BeginAt is like Begin, but the run's clock is zero when the machine's clock reads the value of the parameter zero.
func (p *Processes) BeginAt(zero int64) (*Session, error) {
	p.session.Clock = clockAt(p.orders.Judged, zero, p.moment, p.shared)
	for _, c := range p.all {
		if err := json.NewEncoder(c.input).Encode(message{Zero: zero}); err != nil {
			return nil, fmt.Errorf("worker process %d: %w", c.Number, err)
		}
	}
	p.session.Processes = p.all
	return &p.session, nil
}

// Slack returns the largest difference between the clocks of two workers.
func (p *Processes) Slack() time.Duration { return p.session.Slack }

// Run implements Crew. It waits for the reports of the processes. A process that was killed sends none.
func (p *Processes) Run(ctx, stop context.Context) (Report, error) {
	defer context.AfterFunc(stop, p.stop)()
	defer context.AfterFunc(ctx, func() {
		for _, c := range p.all {
			_ = c.Kill() // an error does not matter: nothing else can be done
		}
	})()
	reports := make([]*Report, len(p.all))
	errs := make([]error, len(p.all))
	var waits sync.WaitGroup
	for i, c := range p.all {
		waits.Go(func() { reports[i], errs[i] = c.report(p.session.Clock.Now) })
	}
	waits.Wait()
	var total Report
	for _, r := range reports {
		if r != nil {
			total.Add(r)
		}
	}
	return total, errors.Join(errs...)
}

// report waits for the report of a process. It returns nil if the process was killed.
func (c *Process) report(now func() time.Duration) (*Report, error) {
	var a answer
	err := c.output.Decode(&a)
	if err == nil && a.Report != nil {
		if err := a.Report.err(); err != nil {
			return a.Report, c.complaint(a, err)
		}
		return a.Report, nil
	}
	killed := c.killed.Load()
	err = c.end(err)
	c.dead.Store(true)
	if killed {
		return nil, nil
	}
	if said := c.stderr.panic(); said != nil && a.Error == "" && c.cmd != nil && c.cmd.ProcessState.Exited() {
		return &Report{Crashes: []history.Breakdown{{Process: int16(c.Number), Workers: c.Workers, At: now(),
			Said: said,
			Text: fmt.Sprintf("worker process %d ended unexpectedly (%s)", c.Number, c.cmd.ProcessState)}}}, nil
	}
	return nil, c.complaint(a, err)
}

// stop tells the processes to finish the visits in progress, and then end.
func (p *Processes) stop() {
	for _, c := range p.all {
		_ = c.input.Close() // an error does not matter: it may be closed already
	}
}

// Add adds the report of another process to r.
func (r *Report) Add(o *Report) {
	r.Begun += o.Begun
	r.Skipped += o.Skipped
	r.Unfinished = append(r.Unfinished, o.Unfinished...)
	r.RoundTrips = append(r.RoundTrips, o.RoundTrips...)
	r.Hung, r.Crashes = append(r.Hung, o.Hung...), append(r.Crashes, o.Crashes...)
	r.Wear, r.CPU = append(r.Wear, o.Wear...), r.CPU+o.CPU
	for what, text := range o.Said {
		r.Said = workload.Note(r.Said, what, text)
	}
	r.Driver = r.Driver.and(o.Driver)
	l, m := &r.Load, &o.Load
	l.OwnCPU += m.OwnCPU
	l.MachineCPU = max(l.MachineCPU, m.MachineCPU)
	l.OthersCPU = max(l.OthersCPU, m.OthersCPU)
	l.StolenCPU = max(l.StolenCPU, m.StolenCPU)
	l.GCPauseMax = max(l.GCPauseMax, m.GCPauseMax)
	l.SchedulingP99 = max(l.SchedulingP99, m.SchedulingP99)
	l.PoolWaits += m.PoolWaits
	l.Stalls += m.Stalls
}

// RoundTrips implements Crew. It returns false, because processes report round trips only at the end.
func (p *Processes) RoundTrips() (int64, bool) { return 0, false }

func (p *Processes) Close() error {
	p.stop()
	for _, c := range p.all {
		c.endDriver()
		_ = c.Kill()     // an error does not matter: the process has usually ended
		_ = c.cmd.Wait() // an error does not matter: Run has returned it
	}
	p.all = nil
	if p.board == nil {
		return nil
	}
	return p.board.close()
}

// Kill kills the process immediately.
func (c *Process) Kill() error {
	c.killed.Store(true)
	return errors.Join(c.signal(syscall.SIGCONT), c.signal(syscall.SIGKILL), c.signalDriver(syscall.SIGKILL))
}

// signal sends a signal to the process. It returns nil if the process has ended.
func (c *Process) signal(s syscall.Signal) error {
	if c.elsewhere != nil {
		return c.elsewhere(s)
	}
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Dead tells whether the process ended too early.
func (c *Process) Dead() bool { return c.dead.Load() }

// Source returns the number of the process's clients: see topologies.ClientOptions.
func (c *Process) Source() int { return c.Number + 1 }

// Stop pauses the process until Continue, as a long garbage collection would. The lock's program is paused too,
// because both form one application.
func (c *Process) Stop() error {
	return errors.Join(c.signal(syscall.SIGSTOP), c.signalDriver(syscall.SIGSTOP))
}

// Cut cuts the network between a process on this machine and all servers; false restores it.
func (c *Process) Cut(cut bool) error { return json.NewEncoder(c.input).Encode(message{Cut: cut}) }

func (c *Process) Continue() error {
	return errors.Join(c.signalDriver(syscall.SIGCONT), c.signal(syscall.SIGCONT))
}
