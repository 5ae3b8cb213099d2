package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// Real is what a counterexample came to when it was repeated on real servers, in real time: the same clients, and links
// that hold each message until the order of the trace lets it go.
type Real struct {
	Server  string        `json:"server,omitempty"` // name and version; empty = none was asked
	Shows   bool          `json:"shows"`
	Verdict string        `json:"verdict,omitempty"` // of its history: checker and cause
	Why     string        `json:"why,omitempty"`     // it does not show
	Step    int           `json:"step,omitempty"`    // where it diverged, counted from 1; 0 = nowhere
	Steps   int           `json:"steps"`
	Left    int           `json:"left"`    // of them: of clients that had lost patience one try earlier than in the trace
	Stretch int           `json:"stretch"` // how many times longer its times are than those of the trace
	Took    time.Duration `json:"took_ns"`
}

// String says in a sentence whether it shows.
func (r *Real) String() string {
	where := fmt.Sprintf("%s: ", cmp.Or(r.Server, "a real server"))
	how := fmt.Sprintf("%d steps in the order of the trace, times %d times as long, in %v", r.Steps-r.Left, r.Stretch,
		r.Took.Round(time.Millisecond))
	switch {
	case r.Shows:
		return fmt.Sprintf("shows on %syes, %s (%s)", where, r.Verdict, how)
	case r.Server == "":
		return "cannot be shown on " + where + r.Why
	case r.Step > 0:
		return fmt.Sprintf("shows on %sno, diverges at step %d of %d: %s", where, r.Step, r.Steps, r.Why)
	}
	return fmt.Sprintf("shows on %sno, %s (%s)", where, r.Why, how)
}

const (
	mostStretch  = 10               // leases of 3 s: a machine that is late by some 100 ms does no harm
	stepPatience = 10 * time.Second // for what a step waits for, besides its time
	glance       = 2 * time.Millisecond
)

// onServers repeats a counterexample on servers that it starts, as many as there are sites. The budget bounds it.
func onServers(t *testing.T, spec locks.Spec, o Options, f *Found) (*Real, error) {
	t.Helper()
	script, o, err := stretched(t, spec, o, f)
	if err != nil {
		return nil, err
	}
	return perform(t, spec, &o, script, f.Checker)
}

// performance is what is repeated: the steps of a schedule, and the answers in their order.
type performance struct {
	steps    []step
	answers  []*exchange
	length   time.Duration
	patience time.Duration // for what a step waits for, besides its time
}

// stretched runs a counterexample once more in virtual time, with all times as long as the budget allows. If the same
// violation is not there then, because a lock has times of its own, they stay as they are.
func stretched(t *testing.T, spec locks.Spec, o Options, f *Found) (performance, Options, error) {
	t.Helper()
	run, err := again(t, spec, o, f)
	if err != nil {
		return performance{}, o, err
	}
	k := min(cmp.Or(o.Budget, Defaults.Budget)/2/max(run.w.trace.length, 1), mostStretch)
	if k > 1 {
		long := o
		long.stretch = int(k)
		for _, d := range []*time.Duration{&long.TTL, &long.Hold, &long.Pause, &long.Delay, &long.Hang, &long.Leap} {
			*d *= k
		}
		if longer, err := again(t, spec, long, f); err == nil {
			run, o = longer, long
		}
	}
	return performance{run.w.trace.steps, run.w.trace.exchanges, run.w.trace.length, stepPatience}, o, nil
}

// again runs a counterexample and returns an error if it no longer is one.
func again(t *testing.T, spec locks.Spec, o Options, f *Found) (*schedule, error) {
	run, err := play(t, spec, &o, newKit(), f.Schedule, nil, true, nil)
	if err == nil {
		err = run.wrong
	}
	if err != nil {
		return nil, err
	}
	_, v, err := judge(run)
	if err == nil && (v == nil || v.Checker != f.Checker) {
		err = fmt.Errorf("%w: it violates something else, or nothing", errDiverged)
	}
	return run, err
}

// perform starts servers and lets clients repeat the steps on them.
func perform(t *testing.T, spec locks.Spec, o *Options, p performance, violated string) (r *Real, err error) {
	t.Helper()
	r = &Real{Steps: len(p.steps), Stretch: max(o.stretch, 1)}
	if r.Why = impossible(&p, o); r.Why != "" {
		return r, nil
	}
	server, err := topologies.FindServer(t.Context(), "")
	if err != nil {
		return nil, err
	}
	up, err := topologies.Independent(o.Sites).Up(t.Context(), topologies.Options{Server: server})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	begun := time.Now()
	c := &conductor{schedule: newSchedule(newWorld(o.Clients, o.Sites, newKit()), spec, o), performance: p,
		here: map[*exchange]*exchange{}, names: names{}}
	c.nodes = up.Nodes
	for _, site := range up.Sites {
		c.sites = append(c.sites, func(l *link) (far, error) { return connect(t.Context(), site, l) })
	}
	c.forget = func(site int) { c.wrong = errors.Join(c.wrong, c.nodes[site].Do(t.Context(), "FLUSHALL").Err()) }
	if err = c.openClients(); err == nil {
		c.history.Bounds.Recovery = 100 * time.Millisecond
		c.run(t.Context(), func() { c.conduct(t.Context()) }, func() { c.ending(t.Context()) })
	}
	c.close()
	if r.Server, r.Left, r.Took = server.String(), c.left, time.Since(begun); err != nil {
		return nil, err
	}
	if c.wrong != nil {
		r.Step, r.Why = min(c.at+1, r.Steps),
			fmt.Sprintf("%v (by then up to %v late)", c.wrong, c.late.Round(time.Millisecond))
		return r, nil
	}
	return r, r.judge(c.schedule, violated)
}

// judge looks for the violation in the history of the real run.
func (r *Real) judge(run *schedule, violated string) error {
	all, _, err := judge(run)
	if err != nil {
		return err
	}
	r.Why = "its history violates nothing"
	for i := range all {
		v := &all[i]
		if v.Status != checker.Fail || run.excuses(v) {
			continue
		}
		r.Why = "its history violates " + v.Checker
		if r.Verdict = v.Checker + ": " + v.Cause; alike(v.Checker, violated) {
			r.Shows, r.Why = true, ""
			return nil
		}
	}
	return nil
}

// alike tells whether two checkers see the same: what two holders at once do to each other is a lost update.
func alike(a, b string) bool {
	both := []string{"exclusion", "lost-updates"}
	return a == b || slices.Contains(both, a) && slices.Contains(both, b)
}

// impossible says what of a schedule no server does on demand.
func impossible(p *performance, o *Options) string {
	limit := cmp.Or(o.Budget, Defaults.Budget)
	switch {
	case slices.ContainsFunc(p.steps, func(s step) bool { return s.act == leaps }):
		return "its clock does not jump on demand"
	case p.length > limit:
		return fmt.Sprintf("the schedule takes %v of real time, --budget allows %v", p.length.Round(time.Second), limit)
	}
	return ""
}

// wire is the end of a link at a real server.
type wire struct{ net.Conn }

// connect makes a connection whose user need not know the password.
func connect(ctx context.Context, site *topologies.Site, l *link) (far, error) {
	conn, err := site.Dialer(0)(ctx, "tcp", site.Addrs()[0])
	if err != nil {
		return nil, err
	}
	if _, err = conn.Write(command([]string{"auth", site.Password()})); err == nil {
		_, err = readFrame(conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.w.links.Go(func() {
		_, _ = io.Copy(l, conn) // it ends with the connection
		l.close()
	})
	return wire{conn}, nil
}

func (w wire) send(_ string, f *frame, _ bool) error {
	_, err := w.Conn.Write(command(f.words)) // its bytes may name a script by its digest
	return err
}

func (w wire) close() { _ = w.Conn.Close() } // its reader is told

// conductor lets the clients of a real run do what the script says, in its order.
type conductor struct {
	*schedule
	performance
	nodes []*topologies.Node
	here  map[*exchange]*exchange // those of the script, as they are here
	names names
	at    int           // the step
	left  int           // steps that were left out
	late  time.Duration // at most, behind the times of the trace
}

// conduct lets one step after another happen.
func (c *conductor) conduct(ctx context.Context) {
	begun := time.Now()
	for c.at = range c.steps {
		until := begun.Add(c.steps[c.at].at)
		c.await(func() bool { return !time.Now().Before(until) }, until)
		err := c.next(ctx, &c.steps[c.at])
		if c.late = max(c.late, time.Since(until)); err != nil {
			c.wrong = errors.Join(c.wrong, fmt.Errorf("%s: %w", c.steps[c.at], err))
		}
		if c.wrong != nil {
			return
		}
	}
	if c.at = len(c.steps); !c.await(func() bool { return c.w.done(func(i int) bool { return !c.crashed[i] }) },
		begun.Add(c.length+c.patience)) {
		c.wrong = errors.New("when the trace has ended clients go on")
	}
}

// next lets a step happen, and waits for what follows at once.
func (c *conductor) next(ctx context.Context, st *step) error {
	var e *event
	if !c.soon(func() bool { e = c.find(st.e); return e != nil || c.w.gone(st.e.client) }) {
		return fmt.Errorf("this does not come in %v, but %s", c.patience, c.waiting(st.e.client))
	}
	switch x := st.e.x; {
	case e == nil: // its patience was enough for fewer refused tries, since each takes a bit longer
		c.left++
		return nil
	case st.e.kind == request:
		c.here[x] = e.x
		c.names.learn(st.e.words, e.words)
		if st.act == letGo {
			if err := c.expired(ctx, st); err != nil {
				return err
			}
		}
	case x != nil && !x.pushed && !c.names.answers(x.answer, e.x.answer, c.o.TTL):
		return fmt.Errorf("the server answers %q, the model %q", e.x.answer, x.answer)
	}
	if o := (option{e, st.act}); st.act == expires {
		c.slow(st.wait, o)
	} else {
		c.take(o)
	}
	if st.act == letGo && e.x == nil {
		<-e.done
	}
	if !c.soon(c.answered) {
		return errors.New("the server does not answer")
	}
	c.await(func() bool { return len(c.of(e.client)) > 0 }, time.Now().Add(glance)) // it takes note of what it was told
	return nil
}

// find finds the event of the script among those that wait; nil if it is not there.
func (c *conductor) find(want *event) *event {
	list := c.w.ready(-1, func(e *event) bool {
		switch {
		case e.client != want.client || e.kind != want.kind || e.site != want.site:
			return false
		case e.x == nil:
			return true
		case e.kind == reply && !want.x.pushed:
			return e.x == c.here[want.x]
		}
		return e.x.pushed == want.x.pushed && c.names.same(want.words, e.words)
	})
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// of lists what of a client waits.
func (c *conductor) of(client int) []*event {
	return c.w.ready(-1, func(e *event) bool { return e.client == client })
}

// waiting says what a client waits with.
func (c *conductor) waiting(client int) string {
	var list []string
	for _, e := range c.of(client) {
		if s := (step{e: e}).String(); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return cmp.Or(strings.Join(list, "; "), "nothing")
}

// expired waits until the server of a request has removed the keys that the model has removed by then.
func (c *conductor) expired(ctx context.Context, st *step) error {
	var keys []string
	var err error
	if c.await(func() bool {
		keys, err = c.nodes[st.e.site].Do(ctx, "KEYS", "*").StringSlice()
		return err != nil || len(keys) <= st.keys
	}, time.Now().Add(c.o.TTL+c.patience)); err != nil || len(keys) == st.keys {
		return err
	}
	return fmt.Errorf("the server has %d keys, the model %d: a lease has ended at another step", len(keys), st.keys)
}

// answered tells whether the servers have answered all that the model had answered after this step.
func (c *conductor) answered() bool {
	return !slices.ContainsFunc(c.answers, func(x *exchange) bool {
		here := c.here[x]
		if x.before > c.at+1 || here == nil {
			return false
		}
		here.link.mu.Lock()
		defer here.link.mu.Unlock()
		return !here.answered && !here.link.clientClosed
	})
}

// soon waits until something is true and reports whether that came to be.
func (c *conductor) soon(is func() bool) bool { return c.await(is, time.Now().Add(c.patience)) }

// await waits until something is true, or for a moment.
func (c *conductor) await(is func() bool, end time.Time) bool {
	for {
		c.heal()
		c.loseDead()
		c.merge.Drain(c.keep)
		if is() {
			return true
		}
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		c.w.rest(min(left, glance))
	}
}

// ending waits for what no worker will release, and records what is left.
func (c *conductor) ending(ctx context.Context) {
	if slices.Contains(c.crashed, true) {
		c.await(func() bool { return false }, time.Now().Add(2*c.o.TTL))
	}
	c.leftovers(func(site int, key string) (string, time.Duration) {
		token, err := c.nodes[site].Do(ctx, "GET", key).Text()
		if err != nil {
			fields, _ := c.nodes[site].Do(ctx, "HKEYS", key).StringSlice() // it is no hash either: without a holder
			token = strings.Join(fields, " ")
		}
		ms, _ := c.nodes[site].Do(ctx, "PTTL", key).Int64()
		return token, max(time.Duration(ms)*time.Millisecond, 0)
	})
}

// String names a step.
func (s step) String() string {
	t := &trace{}
	text := fmt.Sprintf("w%02d %s %s", s.e.client, kinds[s.e.kind], t.brief(s.e.words))
	if s.act != letGo {
		text += " " + acts[s.act]
	}
	return strings.TrimSpace(text)
}

// slow records that no message moves for a while.
func (s *schedule) slow(wait time.Duration, o option) {
	s.fault("slow-links", wait, history.Effect{Hits: []history.Party{history.Links}, Blocks: true}, o)
}
