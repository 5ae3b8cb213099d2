package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// Inherited lists the environment variables that a program gets from the suite. They are few, so that a program does
// not depend on the suite's environment.
var Inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// helloTimeouts are the time limits for the greeting, one for each attempt. There are two attempts, since a machine may
// be slow once. openTimeout is the time limit for connecting.
var helloTimeouts = []time.Duration{5 * time.Second, 15 * time.Second}

const openTimeout = 10 * time.Second

// errMute says that a program did not send its greeting in time.
var errMute = errors.New("no greeting")

// Greet starts a program, reads its greeting and ends it.
func Greet(ctx context.Context, args, env []string) (locks.Spec, error) {
	s, p, err := start(ctx, args, env, nil)
	if err != nil {
		return s, err
	}
	p.Close()
	return s, nil
}

// Start starts the program of a lock and lets it connect to the sites. Its greeting must describe the same lock as
// when Greet was called. The caller must close the Process, even if the program fails later.
func Start(ctx context.Context, s locks.Spec, o Options) (*Process, error) {
	again, p, err := start(ctx, s.Program.Args, s.Program.Env, o.Env)
	if err != nil {
		return nil, err
	}
	if again.Name != s.Name || again.Claims != s.Claims || !reflect.DeepEqual(again.Program, s.Program) {
		p.Close()
		return nil, p.about(errors.New("it says something else of itself than when it was asked first"))
	}
	p.spec, p.patience = s, max(patience, 2*o.Lease)
	if err := p.open(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Options say what a program works with.
type Options struct {
	Topology string
	Sites    []topologies.Access
	Source   int           // number by which proxies know this process's clients; 0 = none
	Lease    time.Duration // longest lease that will be requested
	Env      []string      // environment variables besides those in its Spec
}

// start starts a program and reads its greeting. If the greeting does not come in time, start tries once more. The
// variables added are not part of the program's Spec.
func start(ctx context.Context, args, env, added []string) (s locks.Spec, p *Process, err error) {
	for _, within := range helloTimeouts {
		if s, p, err = try(ctx, args, env, added, within); !errors.Is(err, errMute) {
			break
		}
	}
	return s, p, err
}

func try(ctx context.Context, args, env, added []string, within time.Duration) (s locks.Spec, p *Process, err error) {
	p = &Process{
		args: args, patience: patience, calls: map[uint64]*call{}, holds: map[uint64]*hold{},
		failures: map[string]int64{},
		done:     make(chan struct{}), read: make(chan struct{}),
	}
	if err := p.launch(slices.Concat(env, added)); err != nil {
		return s, nil, err
	}
	greetings := make(chan message, 1)
	go p.listen(greetings)
	select {
	case m := <-greetings:
		if s, err = m.spec(args, env); err != nil {
			p.fail(err)
		}
	case <-p.done:
	case <-ctx.Done():
		p.fail(ctx.Err())
	case <-time.After(within):
		p.fail(fmt.Errorf(`%w within %s. It must write {"hello":%q,...} and a newline, and flush its standard output`,
			errMute, within, greeting))
	}
	if p.failed() {
		p.Close()
		return s, nil, p.Err()
	}
	return s, p, nil
}

// launch starts the program with its own pipes, in a process group of its own.
func (p *Process) launch(env []string) (err error) {
	var ends [6]*os.File // read and write ends of standard input, output and error
	defer func() {
		for i, f := range ends {
			if f != nil && (err != nil || i == 0 || i == 3 || i == 5) {
				_ = f.Close() // the program has its own copy
			}
		}
	}()
	for i := 0; i < len(ends); i += 2 {
		if ends[i], ends[i+1], err = os.Pipe(); err != nil {
			return err
		}
	}
	path, err := lookPath(p.args[0], env)
	if err != nil {
		return err
	}
	p.child, err = topologies.Launch(&exec.Cmd{Path: path, Args: p.args, Env: env, Stdin: ends[0], Stdout: ends[3],
		Stderr: ends[5]})
	if err != nil {
		return fmt.Errorf("start %s: %w", p.args[0], err)
	}
	p.input, p.output, p.errors = ends[1], &partial{File: ends[2]}, ends[4]
	p.tail.done = make(chan struct{})
	go p.tail.take(p.errors)
	return nil
}

// lookPath finds a program in the PATH of its own environment.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path, err := exec.LookPath(name)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w; chmod +x %s makes it a program", err, name)
		}
		return path, err
	}
	at := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	if at >= 0 {
		for _, dir := range filepath.SplitList(strings.TrimPrefix(env[at], "PATH=")) {
			if path, err := exec.LookPath(dir + "/" + name); err == nil && dir != "" {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("there is no program %q on the path; write ./%s for one in this directory", name, name)
}

// partial counts the bytes after the last newline.
type partial struct {
	*os.File
	bytes atomic.Int64
}

// Read implements io.Reader.
func (r *partial) Read(b []byte) (int, error) {
	runtime.Gosched() // workers that have just got their replies may send requests, so that there is more to read
	n, err := r.File.Read(b)
	if at := strings.LastIndexByte(string(b[:n]), '\n'); at >= 0 {
		r.bytes.Store(int64(n - at - 1))
	} else {
		r.bytes.Add(int64(n))
	}
	return n, err
}

// open tells the program where the servers are.
func (p *Process) open(ctx context.Context, o Options) error {
	m := request{Op: opOpen, Topology: o.Topology, Lease: o.Lease.Milliseconds()}
	for _, a := range o.Sites {
		s, err := p.reach(ctx, a, o.Source)
		if err != nil {
			return err
		}
		m.Sites = append(m.Sites, s)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	a, _, err := p.ask(ctx, m)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return p.about(fmt.Errorf("no answer to open within %s", openTimeout))
	case p.failed():
		return p.Err()
	case err != nil:
		return err
	case a.Error != nil:
		return p.about(fmt.Errorf("it cannot open topology %s with user and db, if it does not claim defaults: %s",
			o.Topology, p.tail.mask(*a.Error)))
	}
	return nil
}
