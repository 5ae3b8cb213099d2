// Package program tests a program that makes its own load, or any clients that connect. It reads their traffic with
// the servers, or only the servers' replication streams. It starts and ends the program, and returns the traffic as
// operations.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/internal/wire"
	"hammerlock/internal/witness"
	"hammerlock/topologies"
)

// Spec says what is watched.
type Spec struct {
	witness.Options          // the keys, and how holders are told apart
	Args            []string // command line of the program as the user gave it, without passwords
	Command         string   // command of the program, for the shell; empty = any client that connects
	Whole           string   `json:"-"` // Command with passwords
	Env             []string // additional environment variables, with placeholders such as {url}
	WholeEnv        []string `json:"-"` // Env with passwords
	Output          *os.File `json:"-"` // where the program prints; nil = to a file in the topology's directory
	Listen          string   // address of the first proxy; empty = a free port on loopback
	TapOnly         bool     // only the replication stream is read, without a proxy
	Own             bool     // the suite has started the servers
	Service         bool     // the programs are those of a service, which is visited by the suite
	// a fault whose moment never comes is ignored, because the program may never send such a command
	Scenario bool
	Duration time.Duration // how long to watch; 0 = until the program ends, or the user stops it
	// how long a watch without a command keeps operations on disk; 0 = only the latest are kept, in memory
	Keep time.Duration
	// Endpoints are servers that the suite did not start.
	Endpoints []topologies.Access `json:"-"`
	// Untapped means that no replication stream is read.
	Untapped bool
	// Say is called with lines about the addresses of proxies, and about what cannot be seen.
	Say func(line string) `json:"-"`
	// Tell is called, if only streams are read, with each violation and regular summaries.
	Tell func(line string, violation bool) `json:"-"`
}

// ErrUnused says that the program failed before it had sent a command about a lock.
var ErrUnused = errors.New("had sent no command that concerns a lock of --locks")

const (
	tickEvery   = 50 * time.Millisecond
	settleTime  = 500 * time.Millisecond // usual time from the program's end to the last effect
	settleMost  = 3 * time.Second        // longest time from the program's end to the last effect
	summaryTime = time.Minute
	mostKept    = 4 << 20 // operations of a run
	latestKept  = 1 << 18 // latest operations of a watch without a command, which may go on for weeks
)

// Source is a crew.Crew whose work is done by a program. It is used between Open and Close.
type Source struct {
	spec    Spec
	top     *topologies.Topology
	started time.Time
	clock   *history.Clock
	servers []*server
	reader  *witness.Reader
	meter   *measure.Locks
	run     *wire.Run
	taps    []io.Closer
	places  []string // addresses at which clients find the servers
	deaf    []string // servers whose stream is not read, and why
	hooks   atomic.Pointer[[]*hook]
	until   atomic.Int64           // time at which the watching ended; 0 = it continues
	granted chan string            // granted locks, for faults that wait for a grant
	lock    atomic.Pointer[string] // the lock that was granted last

	recorder *recorder // nil = nothing is kept on disk
	lines    lines     // lines that wait to be printed

	mu       sync.Mutex      // guards the fields below
	own      history.History // what the suite has recorded itself so far
	program  *topologies.Program
	proxies  map[*topologies.Node]*wire.Proxy
	notes    []string
	finished chan error // has what ends the watching of a service's programs
	over     string     // why the watching ended early
	found    int        // number of violations that streams alone have proved
	workers  int        // number of workers in the history that was written last
	keys     int
	ticking  sync.WaitGroup
	end      func() // ends the ticking
}

// New makes a Source. The topology must be started with the Source's method Through in its options.
func New(s Spec) *Source {
	return &Source{spec: s, granted: make(chan string), proxies: map[*topologies.Node]*wire.Proxy{},
		finished: make(chan error, 1), end: func() {}}
}

// Open finds the servers in the topology, opens taps and proxies, and starts the clock.
func (s *Source) Open(ctx context.Context, t *topologies.Topology) (err error) {
	s.top, s.started, s.clock = t, time.Now(), history.NewOrderedClock(0)
	s.clock.Set(s.started, 1)
	s.find()
	o := s.spec.Options
	o.Epoch, o.Sites, o.Most, o.Ours = s.started, s.sites(), mostKept, s.spec.Own
	if s.spec.TapOnly {
		o.Alone, o.Violation = true, s.violation
	}
	if s.spec.Command == "" && !s.spec.Service && len(s.spec.Data) == 0 {
		o.Most, o.Rolling = latestKept, true
	}
	s.meter = measure.NewLocks(o.Pattern, o.Alone)
	o.Notice = s.meter.Notice
	if o.Rolling && s.spec.Keep > 0 {
		s.recorder = newRecorder(s.spec.Keep)
		o.Dropped = s.recorder.take
		o.Notice = func(n witness.Notice) {
			if s.meter.Notice(n); n.Kind == witness.Violation {
				s.recorder.violated(&n)
			}
		}
	}
	s.reader = witness.NewReader(o)
	s.run = &wire.Run{Clock: s.clock, Sink: hearing{s.reader, s}}
	if err := s.listen(ctx); err != nil {
		return err
	}
	ticking, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	s.ticking.Go(func() { s.tick(ticking) })
	return nil
}

// violation prints a violation that a stream alone has proved. The reader calls it.
func (s *Source) violation(f witness.Finding) {
	s.lines.add(fmt.Sprintf("%s %s: %s", s.started.Add(f.At).UTC().Format(time.RFC3339Nano), f.Key, f.What), true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found++
}

// tick lets time pass, and prints a summary from time to time.
func (s *Source) tick(ctx context.Context) {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	last := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := s.clock.Now()
		s.reader.Tick(now)
		s.tell()
		if now-last >= summaryTime {
			last = now
			s.summary()
		}
	}
}

// summary prints the measurements of locks and, if only streams are read, counts.
func (s *Source) summary() {
	tell := s.spec.Say
	if s.spec.TapOnly {
		tell = func(line string) { s.spec.Tell(line, false) }
		s.counts()
	}
	numbers := s.Locks()
	for _, fact := range numbers.Facts() {
		tell(fact.Text)
	}
}

// counts prints how many locks were granted, released and expired so far, how many are held, and how many violations
// were found. It is called if only replication streams are read.
func (s *Source) counts() {
	sums, held := s.reader.Sums()
	s.spec.Tell(fmt.Sprintf("%s %d granted, %d given back, %d expired, %d held, %s",
		time.Now().UTC().Format(time.RFC3339), sums.Grants, sums.Releases, sums.Expiries, held,
		human.Quantity(s.Found(), "violation")), false)
}

// Found is the number of violations that streams alone have proved.
func (s *Source) Found() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// Begin implements crew.Crew. There are no lanes.
func (s *Source) Begin(chan<- struct{}) (*crew.Session, error) {
	return &crew.Session{Clock: s.clock, Rate: witness.Rate}, nil
}

// RoundTrips implements crew.Crew. They are not counted.
func (s *Source) RoundTrips() (int64, bool) { return 0, false }

// Run implements crew.Crew. It lets the program run or, without a program, lets clients connect, until the watching
// ends.
func (s *Source) Run(_, stop context.Context) (crew.Report, error) {
	err := s.watch(stop)
	s.until.Store(int64(s.clock.Now()))
	for _, x := range s.servers {
		if x.proxy != nil {
			_ = x.proxy.Close() // commands in flight are recorded as lost
		}
	}
	for begun := time.Now(); time.Since(begun) < settleTime || !s.reader.Settled() && time.Since(begun) < settleMost; {
		<-time.After(tickEvery)
		s.reader.Tick(s.clock.Now())
	}
	s.tell()
	if s.spec.TapOnly {
		s.summary() // otherwise the run prints it
	}
	return crew.Report{}, err
}

// Finish ends the watching of a service's programs. With ErrUnused, nothing is judged or saved.
func (s *Source) Finish(err error) { s.finished <- err }

// watch starts the program, if there is one, and waits until the watching ends.
func (s *Source) watch(stop context.Context) error {
	ctx, cancel := stop, context.CancelFunc(func() {})
	if d := s.spec.Duration; d > 0 {
		ctx, cancel = context.WithTimeout(stop, d)
	}
	defer cancel()
	if s.spec.Command != "" {
		p := &topologies.Program{Command: s.spec.Command, Whole: s.spec.Whole, Env: s.Variables(),
			Output: s.spec.Output, Ready: func(context.Context) error { return nil }}
		s.mu.Lock()
		s.program = p
		s.mu.Unlock()
		if err := s.top.Run(p); err != nil {
			return err
		}
	}
	for {
		var ended <-chan struct{}
		if s.program != nil {
			ended = s.program.Ending()
		}
		select {
		case <-ended:
			if s.restarted(ctx) {
				continue
			}
			return s.went()
		case <-ctx.Done():
			if stop.Err() != nil {
				s.over = context.Cause(stop).Error()
			}
		case err := <-s.finished:
			return err
		}
		return nil
	}
}

// restarted waits until a program that a fault has killed was started again. It returns false if the program has ended
// for another reason, or if the watching is over.
func (s *Source) restarted(ctx context.Context) bool {
	for s.program.Ended() == "" {
		if s.program.State() != topologies.Down {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(tickEvery / 10):
		}
	}
	return false
}

// went is called after the program has ended. If the program failed, it notes how, or returns an error if no command of
// a lock was seen.
func (s *Source) went() error {
	why := s.program.Ended()
	if why == "" || s.program.Succeeded() {
		return nil
	}
	if seen, _ := s.reader.Sums(); seen.Requests == 0 {
		return fmt.Errorf("%s, and %w", why, ErrUnused)
	}
	s.Note(why)
	return nil
}

// Note adds a text to the findings.
func (s *Source) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

// Close implements crew.Crew. It does not end the program: the topology does, when it is closed.
func (s *Source) Close() (err error) {
	s.end()
	s.ticking.Wait()
	if s.recorder != nil {
		s.recorder.stop()
	}
	for _, t := range s.taps {
		err = errors.Join(err, t.Close())
	}
	for _, x := range s.servers {
		if x.proxy != nil {
			err = errors.Join(err, x.proxy.Close())
		}
	}
	return err
}
