// Package program watches a program, or any clients that connect, while they use locks. It reads their traffic with
// the servers, or only the replication streams of the servers. It turns the traffic into operations. It also starts
// and ends the program.
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

// Spec tells what to watch.
type Spec struct {
	witness.Options          // patterns of keys, and how holders are distinguished
	Args            []string // command line of the program, as the user typed it but without passwords
	Command         string   // command line for the shell; empty = no program is started, and any client may connect
	Whole           string   `json:"-"` // Command with passwords
	Env             []string // further environment variables, with placeholders such as {url}
	WholeEnv        []string `json:"-"` // Env with passwords
	Output          *os.File `json:"-"` // output of the program; nil = a file in the directory of the topology
	Listen          string   // address of the first proxy; empty = a free port on loopback
	TapOnly         bool     // only replication streams are read, and there are no proxies
	Own             bool     // the suite has started the servers
	Service         bool     // the programs belong to a service, which the suite visits
	// Scenario is true if a scenario chose the faults. Those at commands that the program never sends are then ignored.
	Scenario bool
	Duration time.Duration // length of the watch; 0 = until the program ends or the user interrupts
	// Keep is the time for which a watch without a program keeps operations on disk; 0 = only in memory, the latest
	// ones.
	Keep time.Duration
	// Endpoints are servers that run already.
	Endpoints []topologies.Access `json:"-"`
	// Untapped turns the reading of replication streams off.
	Untapped bool
	// Say receives lines for the user: addresses of proxies, and facts that the watch cannot see.
	Say func(line string) `json:"-"`
	// Tell receives lines for the user if only replication streams are read: each violation, and regular summaries.
	Tell func(line string, violation bool) `json:"-"`
}

// ErrUnused means that the program failed before it sent any command about a lock.
var ErrUnused = errors.New("had sent no command that concerns a lock of --locks")

const (
	tickEvery   = 50 * time.Millisecond
	settleTime  = 500 * time.Millisecond // usual time from the end of the program until all effects have arrived
	settleMost  = 3 * time.Second        // longest time from the end of the program until all effects have arrived
	summaryTime = time.Minute
	mostKept    = 4 << 20 // limit of the operations of a run
	latestKept  = 1 << 18 // limit of the operations of a watch without a program, which may last for weeks
)

// Source is a crew.Crew whose workers are the clients of a watched program. Call Open before use, and Close after it.
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
	places  []string // addresses to which the clients connect
	deaf    []string // servers whose stream is not read, with the reason
	hooks   atomic.Pointer[[]*hook]
	until   atomic.Int64           // time at which the watch ended; 0 = it continues
	granted chan string            // passes granted locks to a fault that waits for a grant
	lock    atomic.Pointer[string] // lock that was granted last

	recorder *recorder // nil = operations are not kept on disk
	lines    lines     // lines that wait to be printed

	mu       sync.Mutex      // guards the fields below
	own      history.History // what the suite itself has recorded
	program  *topologies.Program
	proxies  map[*topologies.Node]*wire.Proxy
	notes    []string
	finished chan error // receives the end of a watch over a service's programs: nil or an error
	over     string     // why the watch ended early
	found    int        // number of violations that replication streams have proved
	workers  int        // number of workers in the latest version of the history
	keys     int
	ticking  sync.WaitGroup
	end      func() // ends the goroutine of tick
}

// New makes a Source. If the suite starts the topology, the method Through must be in the topology's options.
func New(s Spec) *Source {
	return &Source{spec: s, granted: make(chan string), proxies: map[*topologies.Node]*wire.Proxy{},
		finished: make(chan error, 1), end: func() {}}
}

// Open finds the servers of the topology, and starts to read their streams. It opens the proxies, and starts the
// clock.
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

// violation prints a violation that a replication stream has proved. The Reader calls it.
func (s *Source) violation(f witness.Finding) {
	s.lines.add(fmt.Sprintf("%s %s: %s", s.started.Add(f.At).UTC().Format(time.RFC3339Nano), f.Key, f.What), true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found++
}

// tick tells the Reader the time regularly, prints waiting lines, and prints a summary now and then.
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

// summary prints the measurements of locks. If only replication streams are read, it also prints counts.
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

// The method counts prints the numbers of grants, releases, expiries, holds in progress and violations. It is only
// called if just the replication streams are read.
func (s *Source) counts() {
	sums, held := s.reader.Sums()
	s.spec.Tell(fmt.Sprintf("%s %d granted, %d given back, %d expired, %d held, %s",
		time.Now().UTC().Format(time.RFC3339), sums.Grants, sums.Releases, sums.Expiries, held,
		human.Quantity(s.Found(), "violation")), false)
}

// Found returns the number of violations that replication streams have proved.
func (s *Source) Found() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// Begin implements crew.Crew. The session has no lanes, since this process has no workers.
func (s *Source) Begin(chan<- struct{}) (*crew.Session, error) {
	return &crew.Session{Clock: s.clock, Rate: witness.Rate}, nil
}

// RoundTrips implements crew.Crew. It returns false, since a Source does not count round trips.
func (s *Source) RoundTrips() (int64, bool) { return 0, false }

// Run implements crew.Crew. It starts the program, if there is one, and returns when the watch ends.
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
		s.summary() // otherwise the summary is part of the run's output
	}
	return crew.Report{}, err
}

// Finish ends the watch over a service's programs. If the argument err is ErrUnused, the watch is neither judged nor
// saved.
func (s *Source) Finish(err error) { s.finished <- err }

// watch starts the program, if there is one. It returns when the watch ends.
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

// restarted waits for the restart of a program that a fault has killed. It returns false if the program has ended for
// another reason, or if the watch is over.
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

// The method went handles the end of the program. If the program failed, that is noted for the user. If no command of
// a lock was seen before, it is an error.
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

// Note adds a line about the watch to the record of the run.
func (s *Source) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

// Close implements crew.Crew. It does not end the program, which ends with the topology.
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
