package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/locks/catalogue"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestMain runs a worker process if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "agent" {
		testAgent()
		os.Exit(0)
	}
	os.Exit(crew.Main(context.Background(), known(), m.Run))
}

func known() crew.Catalogue {
	return crew.Catalogue{Locks: catalogue.All, Counters: workload.AllCounters}
}

// bench is a coordinator, servers, and orders for six workers, who work until they are told to stop.
type bench struct {
	*Fleet
	orders crew.Orders
	top    *topologies.Topology
	token  Token
	t      testing.TB
	every  time.Duration // time between two writes of received operations

	mu   sync.Mutex
	said []string
}

func coordinator(t testing.TB, change func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, token: NewToken(), every: 5 * time.Millisecond,
		top: testbed.Up(t, "single", topologies.Options{})}
	o := Options{Count: 2, Listen: "127.0.0.1:0", Token: b.token, Version: "v1", Join: live.Deadline,
		Timeout:  live.Deadline / 2,
		MaxSlack: time.Second, Say: b.say}
	change(&o)
	var err error
	if b.Fleet, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Fleet.Close)
	access := b.top.Sites[0].Access()
	b.orders = crew.Orders{
		Shape: workload.Shape{
			Workers: 6, Keys: 1, Popularity: workload.Even, TTL: 2 * time.Second, Hold: time.Millisecond,
			Wait:  time.Hour,
			Retry: time.Millisecond, End: time.Hour, Seed: 1,
		},
		Lock: catalogue.All[0], Sites: []topologies.Access{access},
		Counter: crew.Counter{Spec: workload.RedisCounter, Access: &access},
		Judged:  true, To: time.Hour,
	}
	return b
}

func (b *bench) say(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, line)
}

// join starts an agent. The returned function ends it, and returns its error.
func (b *bench) join(name string, change func(*AgentOptions)) (leave func() error) {
	b.t.Helper()
	spawner := topologies.OpenSpawner()
	o := AgentOptions{Join: b.Address(), Token: b.token, Name: name, Version: "v1", Known: known(),
		Spawn: spawner.Start, Say: b.say}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- Work(ctx, o) }()
	leave = sync.OnceValue(func() error {
		cancel()
		err := <-done
		spawner.Close()
		return err
	})
	b.t.Cleanup(func() { _ = leave() })
	return leave
}

// playing is a run in progress, with its known history.
type playing struct {
	*crew.Session
	t  testing.TB
	mu sync.Mutex
	h  *history.History
}

// until waits until the known history meets a condition.
func (p *playing) until(what string, reached func(ops []history.Op) bool) {
	p.t.Helper()
	live.Wait(p.t, what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return reached(p.h.Ops)
	})
}

// has waits until the history has an operation of the given kind.
func (p *playing) has(what string, is func(history.Op) bool) {
	p.t.Helper()
	p.until(what, func(ops []history.Op) bool { return slices.ContainsFunc(ops, is) })
}

// by waits until the history has an operation of the given process that began after a given time.
func (p *playing) by(process int16, after time.Duration) {
	p.t.Helper()
	p.has(fmt.Sprintf("work of process %d after %v", process, after), func(op history.Op) bool {
		return op.Process == process && op.Worker >= 0 && op.Call > after
	})
}

// sends waits until a process has sent its operations up to a given time. Later operations of others are not in the
// history before that.
func (p *playing) sends(process int16, upTo time.Duration) {
	p.t.Helper()
	p.until(fmt.Sprintf("what process %d has done up to %v", process, upTo),
		func([]history.Op) bool { return p.Agents()[process-1].UpTo > upTo })
}

// everybody waits until each of the six workers has made a visit.
func (p *playing) everybody() {
	p.t.Helper()
	p.until("visits of every worker", func(ops []history.Op) bool {
		worked := map[int32]bool{}
		for i := range ops {
			if ops[i].Kind == history.End {
				worked[ops[i].Worker] = true
			}
		}
		return len(worked) == 6
	})
}

// begin lets a crew begin. If a paused process makes the order to begin late, that ends the run.
func (b *bench) begin() (c crew.Crew, s *crew.Session) {
	b.t.Helper()
	live.Again(b.t, func(int) string {
		var err error
		if c, err = b.Crew(b.t.Context(), b.orders, b.top.Spawn); err != nil {
			b.t.Fatal(err)
		}
		if s, err = c.Begin(nil); err == nil {
			return ""
		}
		_ = c.Close() // this cancels what has begun
		if !strings.Contains(err.Error(), errLate.Error()) {
			b.t.Fatal(err)
		}
		return err.Error()
	})
	return c, s
}

// play makes one run and returns its history. The run lasts for the given actions, and until every worker has made a
// visit.
func (b *bench) play(during func(*playing)) (*history.History, crew.Report) {
	b.t.Helper()
	c, s := b.begin()
	defer func() {
		if err := c.Close(); err != nil {
			b.t.Error(err)
		}
	}()
	m := history.NewMerge(s.Clock, s.Lanes)
	m.Slack, m.Feeds = s.Slack, s.Feeds
	p := &playing{Session: s, t: b.t, h: &history.History{Header: history.Header{Workers: 6, Processes: 3,
		Keys: b.orders.Shape.Keys}}}
	emit := func(op *history.Op) { p.h.Ops = append(p.h.Ops, *op) }
	stop, end := context.WithCancel(b.t.Context())
	over := make(chan crew.Report, 1)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	all.Go(func() {
		r, err := c.Run(b.t.Context(), stop)
		if err != nil {
			b.t.Error(err)
		}
		over <- r
	})
	ended := make(chan crew.Report, 1)
	all.Go(func() {
		ticker := time.NewTicker(b.every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.mu.Lock()
				final := m.Drain(emit)
				p.mu.Unlock()
				s.Written(final)
			case r := <-over:
				ended <- r
				return
			}
		}
	})
	p.everybody()
	if during != nil {
		during(p)
	}
	end()
	r := <-ended
	m.Flush(emit)
	p.h.Bounds.Agreement, p.h.Partial = s.Proven(), r.Lost
	s.Written(history.Forever)
	return p.h, r
}

// visits returns the number of visits in a history that have ended.
func visits(h *history.History) (n int64) {
	for i := range h.Ops {
		if h.Ops[i].Kind == history.End {
			n++
		}
	}
	return n
}

// TestAgentsGiveOneHistory lets two agents work, twice. Their operations form one history, as sound as that of one
// process, and all that they have sent is written.
func TestAgentsGiveOneHistory(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	b.join("b", nil)
	b.join("a", nil)
	for _, b.orders.Prefix = range []string{"first:", "second:"} {
		var now []results.LiveAgent
		h, report := b.play(func(p *playing) {
			p.until("four frames of each agent", func([]history.Op) bool {
				now = p.Agents()
				return !slices.ContainsFunc(now, func(a results.LiveAgent) bool {
					return a.Frames < 4 || a.Rate <= 0 ||
						a.UpTo <= 0
				})
			})
		})
		if err := h.Validate(); err != nil {
			t.Error(err)
		}
		processes, taken := map[int32]int16{}, [2]int64{}
		for i := range h.Ops {
			op := &h.Ops[i]
			if op.Worker >= 0 {
				processes[op.Worker] = op.Process
			}
			if op.Process > 0 {
				taken[op.Process-1]++
			}
		}
		for w := range int32(6) {
			if got, want := processes[w], int16(1+w/3); got != want {
				t.Errorf("worker %d is of process %d, want %d", w, got, want)
			}
		}
		if n := visits(h); n != report.Begun || n == 0 || len(report.RoundTrips) != 2 ||
			report.RoundTrips[1].Count == 0 || report.Lost != "" {
			t.Errorf("%d visits ended, %+v", n, report)
		}
		f := report.Fleet
		if len(f.Agents) != 2 || f.Agents[0].Name != "a" || !f.Agents[1].SameClock || f.Agents[0].Frames < 4 ||
			f.Slack <= 0 || f.Slack > int64(time.Millisecond) {
			t.Errorf("the fleet: %+v", f)
		}
		for i, a := range now {
			if a.Doubt <= 0 || a.Host == "" {
				t.Errorf("live: %+v", a)
			}
			if n := f.Agents[i].Ops; n != taken[i] || n < a.Ops {
				t.Errorf("%s has sent %d operations, %d before, the history has %d", a.Name, n, a.Ops, taken[i])
			}
		}
		b.until("done; ")
	}
}

// until waits until two agents have printed a line that contains a text, and forgets these lines.
func (b *bench) until(text string) {
	b.t.Helper()
	live.Wait(b.t, fmt.Sprintf("two agents that say %q", text), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		n := 0
		for _, line := range b.said {
			if strings.Contains(line, text) {
				n++
			}
		}
		if n >= 2 {
			b.said = nil
		}
		return n >= 2
	})
}

// TestOtherMachinesClocks makes the agents believe that they are on other machines. So only the exchanges show their
// clocks. The history must be as sound as with one clock.
func TestOtherMachinesClocks(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	b.Fleet.mu.Lock()
	b.here = map[string]*presence{}
	b.Fleet.mu.Unlock()
	elsewhere := func(o *AgentOptions) { o.machine = "another one" }
	b.join("a", elsewhere)
	b.join("b", elsewhere)
	h, report := b.play(func(p *playing) {
		p.until("exchanges with both agents", func([]history.Op) bool {
			return !slices.ContainsFunc(p.Agents(), func(a results.LiveAgent) bool { return a.Exchanges < firstTime })
		})
	})
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	if d := h.Bounds.Doubts; len(d) != 3 || d[1].Machine == 0 || d[1].Machine != d[2].Machine ||
		h.Bounds.Between(1, 2) >= h.Bounds.Between(0, 1) ||
		!strings.Contains(report.Fleet.Text(), "with the coordinator's, ") {
		t.Errorf("%+v: %s", d, report.Fleet.Text())
	}
	for _, a := range report.Fleet.Agents {
		if a.SameClock || a.Doubt <= 0 || a.Doubt > int64(b.o.MaxSlack) {
			t.Errorf("%+v", a)
		}
	}
	if n := visits(h); n != report.Begun || n == 0 {
		t.Errorf("%d visits ended, %+v", n, report)
	}
}

// TestAgentsThatCannotBeUsed: they are refused by name.
func TestAgentsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(o *Options) { o.Names, o.Join = []string{"a", "b"}, 2*time.Second })
	for name, x := range map[string]struct {
		change func(*AgentOptions)
		err    error
		says   string
	}{
		"another version": {func(o *AgentOptions) { o.Version, o.Name = "v2", "a" }, errRefused,
			"agent a has version v2"},
		"another token":      {func(o *AgentOptions) { o.Token = NewToken() }, errToken, "another token"},
		"nobody waits for c": {func(o *AgentOptions) { o.Name = "c" }, errRefused, "waits for a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			o := AgentOptions{Join: b.Address(), Token: b.token, Name: "a", Version: "v1", Say: func(string) {}}
			x.change(&o)
			if err := Work(t.Context(), o); !errors.Is(err, x.err) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	b.join("b", nil)
	live.Wait(t, "the agent", func() bool { return len(b.present()) == 1 })
	_, err := b.Crew(t.Context(), b.orders, b.top.Spawn)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 agents are there: b (") ||
		!strings.Contains(err.Error(), "missing: a") {
		t.Errorf("got %v", err)
	}
}

// TestAnAgentThatSeesOtherServers is refused before the run, because it would test other servers.
func TestAnAgentThatSeesOtherServers(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(o *Options) { o.Count = 1 })
	b.join("a", func(o *AgentOptions) { o.views = []string{"s1 other"} })
	if _, err := b.Crew(t.Context(), b.orders, b.top.Spawn); err == nil ||
		!strings.Contains(err.Error(), "agent a: it sees other servers: s1 other") {
		t.Errorf("got %v", err)
	}
}

// TestAnAgentThatHasGone: an agent that has gone does not count, although it announced itself a moment ago. An agent
// with the same name takes its place.
func TestAnAgentThatHasGone(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(o *Options) { o.Count = 1 })
	b.Fleet.mu.Lock() // agents repeat their hello
	b.here["dead"] = &presence{hello{Name: "a", Epoch: "dead"}, time.Now().Add(time.Minute)}
	b.Fleet.mu.Unlock()
	b.join("a", nil)
	c, err := b.Crew(t.Context(), b.orders, b.top.Spawn)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Close()
	b.Fleet.mu.Lock()
	defer b.Fleet.mu.Unlock()
	if err != nil || len(b.here) != 1 {
		t.Errorf("%v, %d are there", err, len(b.here))
	}
}

// link forwards connections until it is cut. Then it resets them, and accepts no more.
type link struct {
	net.Listener
	to   string
	mu   sync.Mutex
	open []net.Conn
	cut  bool
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{Listener: l, to: strings.TrimPrefix(to, "nats://")}
	t.Cleanup(func() { k.set(true); _ = l.Close() })
	go k.serve()
	return k
}

func (k *link) serve() {
	for {
		near, err := k.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", k.to)
		k.mu.Lock()
		if err != nil || k.cut {
			_ = near.Close()
			k.mu.Unlock()
			continue
		}
		k.open = append(k.open, near, far)
		k.mu.Unlock()
		pass := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close() }
		go pass(near, far)
		go pass(far, near)
	}
}

func (k *link) set(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.cut = cut; cut && len(k.open) > 0; k.open = k.open[1:] {
		_ = k.open[0].Close()
	}
}

// TestALinkThatIsCut resets an agent's connections for a while. The operations of that time come later, and none is
// missing.
func TestALinkThatIsCut(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	k := newLink(t, b.Address())
	b.join("a", nil)
	b.join("b", func(o *AgentOptions) { o.Join = "nats://" + k.Addr().String() })
	h, report := b.play(func(p *playing) {
		k.set(true)
		cut := p.Clock.Now()
		p.sends(1, cut+300*time.Millisecond)
		k.set(false)
		p.by(2, cut)
	})
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	if n := visits(h); n != report.Begun || n == 0 || report.Lost != "" {
		t.Errorf("%d visits ended, %+v", n, report)
	}
}

// TestAnAgentThatIsLost: the report names a lost agent. The later actions of its workers are unknown. The run
// continues without the agent, and the agent ends its workers.
func TestAnAgentThatIsLost(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) string { return lost(t) })
}

func lost(t *testing.T) (undecided string) {
	b := coordinator(t, func(o *Options) { o.Timeout = 3 * time.Second })
	b.orders.Shape.TTL = 500 * time.Millisecond
	k := newLink(t, b.Address())
	b.join("a", nil)
	leave := b.join("b", func(o *AgentOptions) { o.Join = "nats://" + k.Addr().String() })
	var cut time.Duration
	h, report := b.play(func(p *playing) {
		k.set(true)
		cut = p.Clock.Now()
		p.until("the loss", func([]history.Op) bool { return p.Agents()[1].Lost != "" })
		if p.Agents()[0].Lost == "" {
			p.by(1, p.Clock.Now())
		}
	})
	if report.Fleet.Agents[0].Lost != "" {
		return report.Lost
	}
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(report.Lost, "agent b was lost: nothing was heard of it for") ||
		report.Fleet.Agents[1].Lost == "" {
		t.Errorf("lost: %q, %+v", report.Lost, report.Fleet)
	}
	for i := range h.Ops {
		switch op := &h.Ops[i]; {
		case op.Kind == history.Crash:
			t.Errorf("w%02d is called dead at %v: nobody knows what it did then", op.Worker, op.Call)
		case op.Process == 2 && op.Return != history.Forever && op.Return > cut+h.Bounds.Slack:
			t.Errorf("cut off at %v, and of %v it is known: %+v", cut, op.Return, *op)
		}
	}
	live.Wait(t, "that the agent gives up", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.said, func(s string) bool {
			return strings.Contains(s,
				"given up: nothing was heard of the coordinator")
		})
	})
	if err := leave(); err != nil {
		t.Error(err)
	}
	return ""
}
