package topologies

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Outside is a topology without servers. A service is under test: the suite knows its addresses and starts its
// programs, no more.
var Outside = Spec{
	Name:    "http",
	Doc:     "a service that does its own locking",
	shape:   func(*Topology) {},
	locks:   true,
	healthy: func(context.Context, *Topology) error { return nil },
}

// Program is a command that was started in a topology, and that ends with it.
type Program struct {
	Name    string
	Command string   // for the shell
	Whole   string   // the command with its passwords, which is executed and never shown; empty = Command
	Env     []string // additional environment variables
	Output  *os.File // where the program prints; nil = a file in the topology's directory
	// Ready returns nil when the program works again; the caller sets it.
	Ready func(context.Context) error

	log      string
	topology *Topology

	mu     sync.Mutex
	child  *Child // nil before the first start
	paused bool
	killed bool // Kill or close has ended the program
}

// Run starts a program whose command is set.
func (t *Topology) Run(p *Program) error {
	t.starting.Lock()
	p.Name = fmt.Sprintf("program%d", len(t.programs)+1)
	p.log, p.topology = filepath.Join(t.dir, p.Name+".log"), t
	t.programs = append(t.programs, p)
	t.starting.Unlock()
	return p.Start()
}

// Programs returns the started programs, in that order. Others may be started meanwhile.
func (t *Topology) Programs() []*Program {
	t.starting.Lock()
	defer t.starting.Unlock()
	return slices.Clone(t.programs)
}

// Start starts the program again after Kill.
func (p *Program) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd, r := exec.Command("/bin/sh", "-c", cmp.Or(p.Whole, p.Command)), p.topology.reaper
	cmd.Env = append(append(cmd.Environ(), p.Env...), r.Mark())
	cmd.Stdout, cmd.Stderr = cmp.Or(p.Output, file), cmp.Or(p.Output, file)
	child, err := startChild(cmd, p.topology.spawner, r, func() {})
	if err = errors.Join(err, file.Close()); err != nil {
		p.killed = false // the program cannot start
		return fmt.Errorf("start %q: %w", p.Command, err)
	}
	p.child, p.paused, p.killed = child, false, false
	return nil
}

// State tells what the program is doing.
func (p *Program) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

func (p *Program) now() State {
	switch {
	case !p.child.Alive():
		return Down
	case p.paused:
		return Paused
	}
	return Up
}

// Ending is closed when the program has ended.
func (p *Program) Ending() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child.Ended()
}

// Ended says how the program ended without a planned fault, with its last output; empty otherwise.
func (p *Program) Ended() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed || p.now() != Down {
		return ""
	}
	return fmt.Sprintf("%q ended unexpectedly (%s)%s", p.Command, p.child.End(), p.said())
}

// Killed tells whether the program was killed by the suite and not started again.
func (p *Program) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed && p.now() == Down
}

// Succeeded tells whether the program ended by itself with exit code 0.
func (p *Program) Succeeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.killed && p.now() == Down && p.child.End().Success()
}

// lastWords is the most of a program's output that a message quotes, in bytes.
const lastWords = 400

func (p *Program) said() string {
	text, err := os.ReadFile(p.log)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	return ": " + string(text[max(len(text)-lastWords, 0):])
}

// Kill ends the program and all its processes at once, like a crash.
func (p *Program) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now() == Down {
		return errors.New("not running")
	}
	p.killed = true
	return p.child.Kill()
}

// Pause stops the program without ending it; Resume lets it go on.
func (p *Program) Pause() error { return p.become(Up, Paused, syscall.SIGSTOP) }

// Resume lets a paused program go on where it was.
func (p *Program) Resume() error { return p.become(Paused, Up, syscall.SIGCONT) }

func (p *Program) become(from, to State, s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if is := p.now(); is != from {
		return fmt.Errorf("it is %s", is)
	}
	p.paused = to == Paused
	return p.child.Signal(s)
}

// endTimeout is the time that a program has to end after SIGTERM.
const endTimeout = 2 * time.Second

// close ends the program.
func (p *Program) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now() == Down {
		return nil
	}
	p.killed = true
	return p.child.Stop(endTimeout)
}
