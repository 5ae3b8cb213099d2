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

// Process is one worker process.
type Process struct {
	Number  int
	part    int // its number among all processes of the crew
	Workers []int32
	Lanes   []int // the lanes that it writes

	elsewhere func(syscall.Signal) error // sends it a signal on another machine; nil = it is on this machine
	Agent     *Agent                     // the machine of the process; nil = this one

	cmd    *exec.Cmd
	driver int // the group leader of the lock's program; 0 = none
	input  io.WriteCloser
	output *json.Decoder
	stderr said

	killed atomic.Bool
	dead   atomic.Bool
}

// Agent is a machine with workers, as faults see it.
type Agent struct {
	Name  string
	Kill  func() error              // kills the agent and its worker process at once
	Pause func(time.Duration) error // pauses both for the given time
	Cut   func(cut bool) error      // cuts or restores the connections of its workers to all servers
}

// Elsewhere is a worker process on another machine, to which a function sends signals.
func Elsewhere(number int, workers []int32, signal func(syscall.Signal) error, agent *Agent) *Process {
	return &Process{Number: number, Workers: workers, elsewhere: signal, Agent: agent}
}

// Processes is a crew in child processes.
type Processes struct {
	orders  Orders
	share   Share
	all     []*Process
	board   *board
	session Session
	doubt   time.Duration // the error bound of this process's clock
	moment  time.Time
	shared  int64
}

// Spawn starts a command so that it ends with the suite.
type Spawn func(*exec.Cmd) error

// readyTimeout is the time in which a worker process must be ready.
const readyTimeout = 20 * time.Second

// Spread makes a crew of n processes. Each gets its share of the workers and of an open loop's visits.
func Spread(ctx context.Context, o Orders, n int, spawn Spawn) (Crew, error) {
	p, err := SpreadShare(ctx, o, Share{0, n, n}, spawn)
	if err != nil {
		return nil, err // it is closed
	}
	return p, nil
}

// Share says which processes of a crew live on this machine: Count processes from First on, of Of in all.
type Share struct{ First, Count, Of int }

// Workers is the range of workers in the share: from the first up to, but not including, the last.
func (s Share) Workers(all int) (from, to int) {
	return all * s.First / s.Of, all * (s.First + s.Count) / s.Of
}

// SpreadShare is Spread for the processes of a share. Orders.Process is the number of the first process of all shares.
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

// ready waits for every process. The clocks of two processes differ by at most the sum of their error bounds.
func (p *Processes) ready(ctx context.Context, lanes int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		for _, c := range p.all {
			_ = c.cmd.Process.Kill() // it may have ended unexpectedly
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

// endTimeout is how long a process may live after it has closed its output.
const endTimeout = 10 * time.Second

// end waits for a process whose output has ended, and kills it after a while. It returns how the process ended, if it
// ended itself.
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

// Begin implements Crew.
func (p *Processes) Begin(chan<- struct{}) (*Session, error) {
	return p.BeginAt(p.shared + int64(time.Since(p.moment)))
}

// BeginAt is Begin with its zero at a reading of the machine's clock.
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

// Slack is the session's slack.
func (p *Processes) Slack() time.Duration { return p.session.Slack }

// Run waits for the processes' reports. A killed process sends none.
func (p *Processes) Run(ctx, stop context.Context) (Report, error) {
	defer context.AfterFunc(stop, p.stop)()
	defer context.AfterFunc(ctx, func() {
		for _, c := range p.all {
			_ = c.Kill() // nothing else is left to be done
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

// report waits for the process's report or its end. A killed process need not report.
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

// stop lets the processes finish the visits in progress.
func (p *Processes) stop() {
	for _, c := range p.all {
		_ = c.input.Close() // it may be closed already
	}
}

// Add adds the report of another process.
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

// RoundTrips implements Crew: processes report them at the end only.
func (p *Processes) RoundTrips() (int64, bool) { return 0, false }

// Close implements Crew.
func (p *Processes) Close() error {
	p.stop()
	for _, c := range p.all {
		c.endDriver()
		_ = c.Kill()     // mostly it has ended unexpectedly
		_ = c.cmd.Wait() // its report has said how it ended
	}
	p.all = nil
	if p.board == nil {
		return nil
	}
	return p.board.close()
}

// Kill ends the process at once.
func (c *Process) Kill() error {
	c.killed.Store(true)
	return errors.Join(c.signal(syscall.SIGCONT), c.signal(syscall.SIGKILL), c.signalDriver(syscall.SIGKILL))
}

// signal sends a signal. To a process that is gone nothing more can be done.
func (c *Process) signal(s syscall.Signal) error {
	if c.elsewhere != nil {
		return c.elsewhere(s)
	}
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Dead tells whether the process has ended early, and writes no more lanes.
func (c *Process) Dead() bool { return c.dead.Load() }

// Source identifies the clients of the process in the topology.
func (c *Process) Source() int { return c.Number + 1 }

// Stop pauses the process, as a long garbage collection would; Continue resumes it. The lock's program is paused with
// it: together they are one application.
func (c *Process) Stop() error {
	return errors.Join(c.signal(syscall.SIGSTOP), c.signalDriver(syscall.SIGSTOP))
}

// Cut cuts or restores the connections of a process of this machine to all servers.
func (c *Process) Cut(cut bool) error { return json.NewEncoder(c.input).Encode(message{Cut: cut}) }

// Continue resumes a stopped process.
func (c *Process) Continue() error {
	return errors.Join(c.signalDriver(syscall.SIGCONT), c.signal(syscall.SIGCONT))
}
