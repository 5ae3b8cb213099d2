package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
	quit       func() // is called when q is pressed in the dashboard; nil = there is no report
	breaks     []*wireBreak
	granted    chan string // locks, for faults that wait for a grant
	clock      *history.Clock
	started    time.Time
	name       string
	folder     *results.Folder      // nil if nothing is kept, or it was closed
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

	keepEvery = time.Second // what was seen so far is kept
	keepCost  = 20          // ... and for this many times as long as that took not again
)

// killed is why a history ends that was kept while it was seen.
const killed = "its writer was killed"

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
	if err := w.openFolder(); err != nil {
		return err
	}
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
	if err := w.keepSoFar(); err != nil {
		return err
	}
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	var ticking sync.WaitGroup
	ticking.Go(func() { w.keepOn(ending) })
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

// openFolder opens the folder of what is kept, before anything is started.
func (w *watch) openFolder() (err error) {
	w.name = strings.Join([]string{w.started.UTC().Format("20060102-150405"), "wire", strings.ToLower(rand.Text()[:6])},
		"-")
	if w.o.tapOnly {
		return nil
	}
	if w.folder, err = results.OpenFolder(w.o.plan.Out, w.name); err != nil {
		return err
	}
	for _, dir := range w.folder.Killed {
		w.say(w.o.options, "a run was killed; its history is in %s: verify check %s", dir, dir)
	}
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
		line := func(args []string) string { return "exec " + strings.Join(human.Names(args, quote), " ") }
		w.program = &topologies.Program{Command: line(w.o.given), Env: w.variables(),
			Whole: line(w.o.plan.Attach.Secrets.Whole("", w.o.given))}
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

// keepOn keeps what was seen so far, again and again: the suite may be killed. Where it fails, the last time tells.
func (w *watch) keepOn(ctx context.Context) {
	pause := keepEvery
	for w.folder != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		begun := time.Now()
		_ = w.keepSoFar()
		pause = max(keepEvery, keepCost*time.Since(begun))
	}
}

// keepSoFar keeps what was seen so far.
func (w *watch) keepSoFar() error {
	if w.folder == nil {
		return nil
	}
	w.mu.Lock()
	ops, injected := slices.Clone(w.ops), slices.Clone(w.faults)
	w.mu.Unlock()
	h := w.reader.SoFar(w.header(injected), ops)
	h.Partial = killed
	return w.keepHistory(h)
}

// keepHistory writes a history. It takes the place of what was kept before when it is whole.
func (w *watch) keepHistory(h *history.History) error {
	path := w.folder.Path(results.HistoryFile)
	err := h.Save(path + ".new")
	if err == nil {
		return os.Rename(path+".new", path)
	}
	_ = os.Remove(path + ".new") // there is no room for it
	return fmt.Errorf("keep what is seen: %w", err)
}

// header is that of the history.
func (w *watch) header(injected []history.Injection) history.Header {
	sums, _ := w.reader.Sums()
	return history.Header{
		Name: w.name, Started: w.started.UTC(), Command: w.o.command, Topology: "wire",
		Lock: strings.Join(w.o.Locks, ","), Sites: w.sites(), Nodes: len(w.servers),
		Bounds: history.Bounds{Rate: witness.Rate, Round: witness.Round, Recovery: w.o.topology.Recovery},
		Faults: injected, Aside: []string{history.Liveness, history.Fairness, history.Updates}, Wire: w.limits(&sums),
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
	if w.folder != nil { // nothing came of it
		err = errors.Join(err, w.folder.Discard())
		w.folder = nil
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
		Name: w.name, Started: w.started.UTC(), Command: w.o.command, Topology: "wire",
		Lock: strings.Join(w.o.Locks, ","), Counter: "none", Faults: []string{}, Recorded: true,
		Partial: map[bool]string{true: w.over}[len(w.o.given) > 0], Took: int64(time.Since(w.started)),
		Environment: harness.Environment(),
	}
	r.Scenario, r.Faults = w.scenario, append(r.Faults, w.round.faults...)
	h := w.reader.History(w.header(w.faults), left && len(w.o.given) > 0, w.ops)
	sums, _ := w.reader.Sums()
	h.Wire = w.limits(&sums)
	if r.Wire = w.text(&sums); h.Partial == "" {
		h.Partial = r.Partial
	}
	r.Workers, r.Keys, r.Processes, r.Partial = h.Workers, h.Keys, 1, h.Partial
	r.Visits = results.Visits{Begun: sums.Grants, Done: sums.Grants}
	r.Measured, r.Duration = r.Took, r.Took
	folder, err := w.folder, w.keepHistory(h)
	w.folder = nil
	if err == nil {
		r.Verdicts, err = r.Judge(folder.Path(""))
	}
	if err != nil {
		return nil, errors.Join(err, folder.Leave())
	}
	_, err = folder.Commit(r)
	return r, err
}
