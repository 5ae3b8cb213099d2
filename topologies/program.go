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

// Outside is the topology of a service under test that does its own locking. The suite starts no servers, only the
// programs of the service.
var Outside = Spec{
	Name:    "http",
	Doc:     "a service that does its own locking",
	shape:   func(*Topology) {},
	locks:   true,
	healthy: func(context.Context, *Topology) error { return nil },
}

// Program is a command of a service under test. It runs in its own process group, and ends with the topology even if
// the suite is killed.
type Program struct {
	Name    string
	Command string   // for the shell
	Whole   string   // the command with its passwords, which is executed and never printed; empty = Command
	Env     []string // additional environment variables
	Output  *os.File // the program's output; nil = a file in the topology's directory
	// Ready returns nil if the program works again after a restart. The caller sets it.
	Ready func(context.Context) error

	log      string
	topology *Topology

	mu     sync.Mutex
	child  *Child // nil before the first start
	paused bool
	killed bool // the suite has ended the program
}

func (t *Topology) Run(p *Program) error {
	t.starting.Lock()
	p.Name = fmt.Sprintf("program%d", len(t.programs)+1)
	p.log, p.topology = filepath.Join(t.dir, p.Name+".log"), t
	t.programs = append(t.programs, p)
	t.starting.Unlock()
	return p.Start()
}

// Programs returns the programs in the order of their start. It is safe to call while more are started.
func (t *Topology) Programs() []*Program {
	t.starting.Lock()
	defer t.starting.Unlock()
	return slices.Clone(t.programs)
}

// Start starts the program, also again after Kill.
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
		p.killed = false // it is down because it cannot start
		return fmt.Errorf("start %q: %w", p.Command, err)
	}
	p.child, p.paused, p.killed = child, false, false
	return nil
}

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

// Ending returns a channel that is closed when the program has ended.
func (p *Program) Ending() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child.Ended()
}

// Ended returns how the program ended, with the last lines of its output; empty if it runs or the suite has ended it.
func (p *Program) Ended() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed || p.now() != Down {
		return ""
	}
	return fmt.Sprintf("%q ended unexpectedly (%s)%s", p.Command, p.child.End(), p.said())
}

// Killed tells whether the suite has killed the program and not started it again.
func (p *Program) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed && p.now() == Down
}

// Succeeded tells whether the program has ended with exit code 0, without a kill by the suite.
func (p *Program) Succeeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.killed && p.now() == Down && p.child.End().Success()
}

// lastWords is the largest number of bytes of a program's output that an error message quotes.
const lastWords = 400

// said quotes the end of the program's output, without the passwords that it was started with.
func (p *Program) said() string {
	text, err := os.ReadFile(p.log)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	shown := secretsOf(cmp.Or(p.Whole, p.Command), p.Env).Hide(string(text))
	return ": " + shown[max(len(shown)-lastWords, 0):]
}

// Kill kills the program and all its processes, like a crash.
func (p *Program) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now() == Down {
		return errors.New("not running")
	}
	p.killed = true
	return p.child.Kill()
}

func (p *Program) Pause() error { return p.become(Up, Paused, syscall.SIGSTOP) }

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

// endTimeout is the time that a program has to exit after SIGTERM.
const endTimeout = 2 * time.Second

func (p *Program) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now() == Down {
		return nil
	}
	p.killed = true
	return p.child.Stop(endTimeout)
}
