package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
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
	o          *wireOptions
	clock      *history.Clock
	started    time.Time
	top        *topologies.Topology // ours, or one without servers for the program
	servers    []watched
	reader     *witness.Reader
	wire       *wire.Run
	proxies    []*wire.Proxy
	taps       []io.Closer
	deaf       []string // servers without a tap, and why
	program    *topologies.Program
	faults     []history.Injection
	ops        []history.Op // of faults
	notes      []string
	mu         sync.Mutex // guards faults, ops and notes
	broken     sync.WaitGroup
	violations int    // of --tap-only
	over       string // why the watching ended early
}

// watched is a server behind a proxy.
type watched struct {
	addr, user, password string
	db                   int
	dial                 wire.Dial
	secured              bool
	site                 *topologies.Site
	node                 *topologies.Node // of ours
}

const (
	tickEvery   = 50 * time.Millisecond
	settleTime  = 500 * time.Millisecond // what is on its way when the program ends has come by then, as a rule
	settleMost  = 3 * time.Second        // ... at the latest
	summaryTime = time.Minute
)

// run watches until the program ends, and saves what was seen. The run is nil where nothing is kept.
func (w *watch) run(ctx, stop context.Context) (run *results.Run, err error) {
	w.started, w.clock = time.Now(), history.NewOrderedClock(0)
	w.clock.Set(w.started, 1)
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(stop); err != nil {
		return nil, err
	}
	options := w.o.Options
	options.Epoch, options.Sites, options.Most = w.started, len(w.servers), w.o.most
	if w.o.tapOnly {
		options.Most, options.Violation = 0, func(f witness.Finding) {
			_, _ = fmt.Fprintf(w.Stdout, "%s %s: %s\n", w.started.Add(f.At).UTC().Format(time.RFC3339Nano), f.Key, f.What)
			w.violations++
		}
	}
	w.reader = witness.NewReader(options)
	w.wire = &wire.Run{Clock: w.clock, Sink: w.reader}
	if err := w.listen(stop); err != nil {
		if stop.Err() != nil {
			err = nil // it was called off
		}
		return nil, err
	}
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	var ticking sync.WaitGroup
	ticking.Go(func() { w.tick(ending) })
	err = w.watch(stop)
	end()
	ticking.Wait()
	if w.o.tapOnly {
		w.summary()
	}
	if err != nil || w.o.tapOnly {
		return nil, err
	}
	return w.save()
}

// open finds the servers, or starts them.
func (w *watch) open(stop context.Context) (err error) {
	own := w.o.topology
	if own.Name == "" {
		own = topologies.Outside
	}
	var server topologies.Server
	if w.o.topology.Name != "" {
		if server, err = topologies.FindServer(stop, w.o.plan.RedisServer); err != nil {
			return err
		}
	}
	if w.top, err = own.Up(stop, topologies.Options{Server: server}); err != nil {
		return err
	}
	for i, s := range w.top.Sites {
		a := s.Access()
		dial := wire.Dialer(a.Addrs[0], nil)
		w.servers = append(w.servers, watched{addr: a.Addrs[0], password: a.Password, dial: dial, site: s, node: w.top.Nodes[i]})
	}
	if len(w.servers) > 0 {
		return nil
	}
	found := w.o.found
	for _, e := range found.Endpoints {
		user, password := e.Login.Parts()
		s := topologies.Access{Foreign: true, Addrs: []string{e.Addr}, User: user, Password: password, DB: e.DB, TLS: found.TLS}.Site()
		dial := s.Dialer(0)
		w.servers = append(w.servers, watched{addr: e.Addr, user: user, password: password, db: e.DB, site: s, secured: found.TLS != nil,
			dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", e.Addr) }})
	}
	return nil
}

// listen opens taps and proxies.
func (w *watch) listen(stop context.Context) error {
	for i := range w.servers {
		s := &w.servers[i]
		if err := w.compare(stop, i); err != nil {
			return fmt.Errorf("%s: %w", s.addr, err)
		}
		if w.o.tap == tapOn || w.o.tapOnly {
			tap, err := w.wire.Tap(stop, wire.Source{Server: i, Dial: s.dial, User: s.user, Password: s.password})
			if err != nil && w.o.tapOnly {
				return fmt.Errorf("%s: %w", s.addr, err)
			}
			if err != nil {
				w.deaf = append(w.deaf, fmt.Sprintf("%s refuses a tap (%v)", s.addr, err))
			} else {
				w.taps = append(w.taps, tap)
			}
		} else {
			w.deaf = append(w.deaf, s.addr+" has none (--tap off)")
		}
		if w.o.tapOnly {
			continue
		}
		listen := "127.0.0.1:0"
		if w.o.listen != "" && i == 0 {
			listen = w.o.listen
		}
		p, err := w.wire.Listen(context.WithoutCancel(stop), wire.Endpoint{Server: i, Listen: listen, Dial: s.dial, Address: s.addr})
		if err != nil {
			return err
		}
		w.proxies = append(w.proxies, p)
		for _, b := range w.o.breaks {
			if _, err := p.Apply(w.rule(context.WithoutCancel(stop), b, i)); err != nil {
				return err
			}
		}
		w.say(w.o.options, "%s is at %s", s.addr, p.Addr())
	}
	for _, why := range w.deaf {
		w.say(w.o.options, "without effects: %s", why)
	}
	return nil
}

// compare finds by how much a server's clock is ahead of ours.
func (w *watch) compare(stop context.Context, i int) error {
	c := w.servers[i].site.Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	least, most := -time.Duration(history.Forever), time.Duration(history.Forever)
	for range 5 {
		before := time.Now()
		at, err := c.Time(stop).Result()
		if err != nil {
			return err
		}
		// A server's clock has microseconds.
		least, most = max(least, at.Sub(time.Now().Round(0))-time.Microsecond), min(most, at.Sub(before.Round(0))+time.Microsecond)
	}
	w.reader.Clock(i, least, most)
	return nil
}

// address is where a program finds the proxy of a server.
func (w *watch) address(i int) string {
	s := &w.servers[i]
	u := url.URL{Scheme: "redis", Host: w.proxies[i].Addr()}
	if s.password != "" {
		u.User = url.UserPassword(s.user, s.password)
	}
	if s.db != 0 {
		u.Path = "/" + strconv.Itoa(s.db)
	}
	return u.String()
}

// variables are what the program gets besides its environment.
func (w *watch) variables() (env []string) {
	var urls []string
	for i := range w.proxies {
		urls = append(urls, w.address(i))
	}
	host, port, _ := net.SplitHostPort(w.proxies[0].Addr())
	fill := strings.NewReplacer("{url}", urls[0], "{urls}", strings.Join(urls, ","), "{host}", host, "{port}", port, "{password}", w.servers[0].password)
	env = []string{"REDIS_URL=" + urls[0], "REDIS_URLS=" + strings.Join(urls, ",")}
	for _, v := range w.o.env {
		env = append(env, fill.Replace(v))
	}
	return env
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
		w.program = &topologies.Program{Command: "exec " + strings.Join(parts, " "), Env: w.variables(), Output: w.terminals[1]}
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
			if why := w.program.Ended(); why != "" && !strings.Contains(why, "exit status 0") {
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
		if w.o.tapOnly && now-last >= summaryTime {
			last = now
			w.summary()
		}
	}
}

// summary prints a line about what was seen so far.
func (w *watch) summary() {
	sums, held := w.reader.Sums()
	_, _ = fmt.Fprintf(w.Stdout, "%s %d granted, %d given back, %d expired, %d held, %s\n", time.Now().UTC().Format(time.RFC3339),
		sums.Grants, sums.Releases, sums.Expiries, held, human.Quantity(w.violations, "violation"))
}

// close ends all that was started.
func (w *watch) close() (err error) {
	for _, t := range w.taps {
		err = errors.Join(err, t.Close())
	}
	for _, p := range w.proxies {
		err = errors.Join(err, p.Close())
	}
	w.taps, w.proxies = nil, nil
	if w.top != nil {
		err = errors.Join(err, w.top.Close())
		w.top = nil
	}
	return err
}

// save judges what was seen, and keeps it.
func (w *watch) save() (*results.Run, error) {
	left := w.program == nil || w.program.State() == topologies.Down
	for _, p := range w.proxies {
		_ = p.Close() // what is in flight is told as lost
	}
	w.proxies = nil
	for begun := time.Now(); time.Since(begun) < settleTime || !w.reader.Settled() && time.Since(begun) < settleMost; {
		<-time.After(tickEvery)
		w.reader.Tick(w.clock.Now())
	}
	w.broken.Wait()
	r := &results.Run{
		Name:    strings.Join([]string{w.started.UTC().Format("20060102-150405"), "wire", strings.ToLower(rand.Text()[:6])}, "-"),
		Started: w.started.UTC(), Command: w.o.repeated(), Topology: "wire", Lock: strings.Join(w.o.Locks, ","), Counter: "none", Faults: []string{}, Recorded: true,
		Partial: map[bool]string{true: w.over}[len(w.o.given) > 0], Took: int64(time.Since(w.started)), Environment: harness.Environment(),
	}
	for _, b := range w.o.breaks {
		r.Faults = append(r.Faults, b.text)
	}
	h := w.reader.History(history.Header{
		Name: r.Name, Started: r.Started, Command: r.Command, Topology: r.Topology, Lock: r.Lock, Sites: len(w.servers), Nodes: len(w.servers),
		Bounds: history.Bounds{Rate: witness.Rate, Round: witness.Round}, Faults: w.faults, Aside: []string{history.Liveness, history.Fairness, history.Updates},
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
	if err = writeHistory(folder.Path(results.HistoryFile), h); err == nil {
		r.Verdicts, err = r.Judge(folder.Path(""))
	}
	if err != nil {
		return nil, errors.Join(err, folder.Leave())
	}
	_, err = folder.Commit(r)
	return r, err
}

func writeHistory(path string, h *history.History) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out, err := history.Create(f, h.Header)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	for i := range h.Ops {
		err = errors.Join(err, out.Add(&h.Ops[i]))
	}
	for id, text := range h.Notes {
		err = errors.Join(err, out.Note(id, text))
	}
	return errors.Join(err, out.Close(h.Partial), f.Close())
}
