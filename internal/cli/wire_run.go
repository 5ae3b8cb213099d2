package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/wire"
	"hammerlock/internal/witness"
	"hammerlock/results"
	"hammerlock/topologies"
)

// watch is a run of wire.
type watch struct {
	Env
	o *wireOptions
	round
	quit       func() // is called when q is pressed in the dashboard; nil = there is none
	breaks     []*wireBreak
	granted    chan string // locks, for faults that wait for a grant
	clock      *history.Clock
	started    time.Time
	top        *topologies.Topology // ours, or one without servers for the program
	servers    []*watched
	proxies    map[*topologies.Node]*wire.Proxy // of our servers
	reader     *witness.Reader
	wire       *wire.Run
	taps       []io.Closer
	deaf       []string // servers without a tap, and why
	program    *topologies.Program
	faults     []history.Injection
	ops        []history.Op // of faults
	notes      []string
	mu         sync.Mutex // guards ops, notes and proxies
	broken     sync.WaitGroup
	end        func() // of the ticking
	view       *wireView
	violations int    // of --tap-only
	over       string // why the watching ended early
}

const (
	tickEvery   = 50 * time.Millisecond
	settleTime  = 500 * time.Millisecond // effects have come so long after the program ended, as a rule
	settleMost  = 3 * time.Second        // ... at the latest
	summaryTime = time.Minute
	mostKept    = 4 << 20 // operations of a run
)

// run watches until the program ends, and saves the history. The run is nil where nothing is kept.
func (w *watch) run(ctx, stop context.Context) (run *results.Run, err error) {
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.begin(ctx, stop); err != nil {
		if stop.Err() != nil {
			err = nil // it was called off
		}
		return nil, err
	}
	if err = w.watch(stop); w.o.tapOnly {
		w.end()
		w.summary()
	}
	if err != nil || w.o.tapOnly {
		return nil, err
	}
	return w.save()
}

// begin finds the servers, or starts them, and opens taps and proxies.
func (w *watch) begin(ctx, stop context.Context) error {
	w.started, w.clock, w.end = time.Now(), history.NewOrderedClock(0), func() {}
	w.clock.Set(w.started, 1)
	w.granted, w.proxies = make(chan string), map[*topologies.Node]*wire.Proxy{}
	for _, text := range w.round.faults {
		b, err := parseBreak(text)
		if err != nil {
			return err
		}
		w.breaks = append(w.breaks, b)
	}
	if err := w.open(stop); err != nil {
		return err
	}
	options := w.o.Options
	options.Epoch, options.Sites, options.Most, options.Ours = w.started, w.sites(), mostKept, w.o.topology.Name != ""
	if w.o.tapOnly {
		options.Most, options.Violation = 0, func(f witness.Finding) {
			_, _ = fmt.Fprintf(w.Stdout, "%s %s: %s\n", w.started.Add(f.At).UTC().Format(time.RFC3339Nano), f.Key,
				f.What)
			w.violations++
		}
	}
	w.reader = witness.NewReader(options)
	w.wire = &wire.Run{Clock: w.clock, Sink: w.reader}
	if err := w.listen(stop); err != nil {
		return err
	}
	if w.quit != nil {
		var err error
		if w.view, err = w.openView(w.quit); err != nil {
			return err
		}
	}
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	var ticking sync.WaitGroup
	ticking.Go(func() {
		w.tick(ending)
		w.note("dashboard", w.view.close())
	})
	w.end = sync.OnceFunc(func() {
		end()
		ticking.Wait()
	})
	return nil
}

// watch lets the program run, or others connect, until that is over.
func (w *watch) watch(stop context.Context) error {
	ctx, cancel := stop, context.CancelFunc(func() {})
	if d := w.o.plan.Duration; d > 0 {
		ctx, cancel = context.WithTimeout(stop, d)
	}
	defer cancel()
	var ended <-chan struct{}
	if len(w.o.given) > 0 {
		parts := human.Names(w.o.given, quote)
		w.program = &topologies.Program{Command: "exec " + strings.Join(parts, " "), Env: w.variables()}
		if w.view == nil {
			w.program.Output = w.terminals[1]
		}
		if err := w.top.Run(w.program); err != nil {
			return err
		}
	}
	for {
		if w.program != nil {
			ended = w.program.Ending()
		}
		select {
		case <-ended:
			if w.broken.Wait(); w.program.State() != topologies.Down {
				continue // a fault has started it again
			}
			if why := w.program.Ended(); why != "" && !w.program.Succeeded() {
				if seen, _ := w.reader.Sums(); seen.Requests == 0 {
					return fmt.Errorf("%s, and had sent no command that concerns a lock of --locks", why)
				}
				w.notes = append(w.notes, why)
			}
		case <-ctx.Done():
			if stop.Err() != nil {
				w.over = context.Cause(stop).Error()
			}
		}
		return nil
	}
}

// tick lets time pass, and prints a summary now and then.
func (w *watch) tick(ctx context.Context) {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	last := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := w.clock.Now()
		w.reader.Tick(now)
		w.view.look(w)
		if w.o.tapOnly && now-last >= summaryTime {
			last = now
			w.summary()
		}
	}
}

// summary prints a line of counts.
func (w *watch) summary() {
	sums, held := w.reader.Sums()
	_, _ = fmt.Fprintf(w.Stdout, "%s %d granted, %d given back, %d expired, %d held, %s\n",
		time.Now().UTC().Format(time.RFC3339),
		sums.Grants, sums.Releases, sums.Expiries, held, human.Quantity(w.violations, "violation"))
}

// close ends all that was started.
func (w *watch) close() (err error) {
	for _, t := range w.taps {
		err = errors.Join(err, t.Close())
	}
	w.taps = nil
	if w.end != nil {
		w.end()
	}
	for _, s := range w.servers {
		if s.proxy != nil {
			err = errors.Join(err, s.proxy.Close())
		}
	}
	if w.top != nil {
		err = errors.Join(err, w.top.Close())
		w.top = nil
	}
	return err
}

// save judges the history, and keeps it.
func (w *watch) save() (*results.Run, error) {
	w.end()
	left := w.program == nil || w.program.State() == topologies.Down
	for _, s := range w.servers {
		_ = s.proxy.Close() // commands in flight are told as lost
	}
	for begun := time.Now(); time.Since(begun) < settleTime || !w.reader.Settled() && time.Since(begun) < settleMost; {
		<-time.After(tickEvery)
		w.reader.Tick(w.clock.Now())
	}
	w.broken.Wait()
	w.injected()
	r := &results.Run{
		Name: strings.Join([]string{w.started.UTC().Format("20060102-150405"), "wire",
			strings.ToLower(rand.Text()[:6])}, "-"),
		Started: w.started.UTC(), Command: w.o.command, Topology: "wire", Lock: strings.Join(w.o.Locks, ","),
		Counter: "none", Faults: []string{}, Recorded: true,
		Partial: map[bool]string{true: w.over}[len(w.o.given) > 0], Took: int64(time.Since(w.started)),
		Environment: harness.Environment(),
	}
	r.Scenario, r.Faults = w.scenario, append(r.Faults, w.round.faults...)
	h := w.reader.History(history.Header{
		Name: r.Name, Started: r.Started, Command: r.Command, Topology: r.Topology, Lock: r.Lock, Sites: w.sites(),
		Nodes:  len(w.servers),
		Bounds: history.Bounds{Rate: witness.Rate, Round: witness.Round, Recovery: w.o.topology.Recovery},
		Faults: w.faults, Aside: []string{history.Liveness, history.Fairness, history.Updates},
	}, left && len(w.o.given) > 0, w.ops)
	sums, _ := w.reader.Sums()
	h.Wire = w.limits(&sums)
	if r.Wire = w.text(&sums); h.Partial == "" {
		h.Partial = r.Partial
	}
	r.Workers, r.Keys, r.Processes, r.Partial = h.Workers, h.Keys, 1, h.Partial
	r.Visits = results.Visits{Begun: sums.Grants, Done: sums.Grants}
	r.Measured, r.Duration = r.Took, r.Took
	folder, err := results.OpenFolder(w.o.plan.Out, r.Name)
	if err != nil {
		return nil, err
	}
	if err = h.Save(folder.Path(results.HistoryFile)); err == nil {
		r.Verdicts, err = r.Judge(folder.Path(""))
	}
	if err != nil {
		return nil, errors.Join(err, folder.Leave())
	}
	_, err = folder.Commit(r)
	return r, err
}
