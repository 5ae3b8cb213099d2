// Package fleet runs the workers of a run on several machines. The coordinator contains a NATS server. Agents connect
// to it, receive orders, and send their records. They keep a copy of each record until the coordinator has written it.
// The possible error of their clocks is measured and written into the history.
package fleet

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hammerlock/internal/crew"
)

// Options configure a coordinator.
type Options struct {
	Count    int           // number of agents
	Names    []string      // names of the agents to wait for; empty = any agents
	Local    bool          // start the agents on this machine
	Listen   string        // host:port for agents
	NATS     string        // existing servers that agents join instead of Listen; empty = none
	Login    Login         // for existing servers
	Token    Token         // agents must have the same token
	Version  string        // agents must have the same version
	Join     time.Duration // longest time to wait for agents
	Timeout  time.Duration // an agent without a message for this long is lost
	MaxSlack time.Duration // an agent is refused if its clock's possible error is more than half of this
	Say      func(string)  // called with lines that list present and missing agents
}

// Fleet is a coordinator. It serves one run after the other.
type Fleet struct {
	o      Options
	server *server.Server // nil = existing servers are used
	nc     *bus

	mu      sync.Mutex
	here    map[string]*presence // agents, indexed by epoch
	refused map[string]string    // agent name -> reason for the refusal
	changed chan struct{}        // signals that an agent has announced itself
	run     *run                 // the latest run; nil = there was none
}

// presence is an agent that announced itself.
type presence struct {
	hello
	heard time.Time
}

// gone is the length of silence after which a waiting agent is regarded as absent. Agents announce themselves each
// second.
const gone = 4 * time.Second

// planMost is the largest size of a message in bytes. It is large, because a plan may contain a trace: all
// due times of an open loop.
const planMost = 32 << 20

// serverTimeout is the longest time that the coordinator's NATS server may take to start.
const serverTimeout = 10 * time.Second

// Open starts a coordinator. The caller must close it.
func Open(o Options) (*Fleet, error) {
	f := &Fleet{o: o, here: map[string]*presence{}, refused: map[string]string{}, changed: make(chan struct{}, 1)}
	if o.NATS != "" {
		var err error
		if f.nc, err = connect(o.NATS, "coordinator", o.Token, o.Login); err != nil {
			return nil, fmt.Errorf("--nats %s: %w", o.NATS, err)
		}
		return f, f.subscribe()
	}
	options, err := o.server()
	if err != nil {
		return nil, err
	}
	if f.server, err = server.NewServer(options); err != nil {
		return nil, fmt.Errorf("--listen %s: %w", o.Listen, err)
	}
	f.server.Start()
	if !f.server.ReadyForConnections(serverTimeout) {
		f.server.Shutdown()
		return nil, fmt.Errorf("--listen %s: the server for agents does not start; is the port taken?", o.Listen)
	}
	if f.nc, err = connect("", "coordinator", o.Token, Login{}, nats.InProcessServer(f.server)); err != nil {
		f.server.Shutdown()
		return nil, err
	}
	return f, f.subscribe()
}

func (o *Options) server() (*server.Options, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: an address, as in 10.0.0.1:4222", o.Listen)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return nil, fmt.Errorf("--listen %q: the port is a number from 0 to 65535", o.Listen)
	}
	secured, err := o.Token.server()
	return &server.Options{
		Host: host, Port: cmp.Or(number, server.RANDOM_PORT), NoSigs: true, NoLog: true, ServerName: "hammerlock",
		Authorization: o.Token.password(),
		TLSConfig:     secured, TLS: true, TLSTimeout: serverTimeout.Seconds(), DisableShortFirstPing: true,
		MaxPayload: planMost,
	}, err
}

// Address returns the address at which agents join.
func (f *Fleet) Address() string {
	if f.server == nil {
		return f.o.NATS
	}
	return strings.Replace(f.server.ClientURL(), "tls://", "nats://", 1)
}

func (f *Fleet) subscribe() error {
	var errs []error
	for subject, take := range map[string]nats.MsgHandler{joinSubject: f.join, clockSubject: f.clock,
		frameSubject: f.frame, finalSubject: f.final} {
		_, err := f.nc.Subscribe(subject, take)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, f.nc.Flush())...)
}

// Close stops the server. Agents that the coordinator did not start wait for the next coordinator.
func (f *Fleet) Close() {
	f.nc.Close()
	if f.server != nil {
		f.server.Shutdown()
		f.server.WaitForShutdown()
	}
}

// join records an agent that announces itself.
func (f *Fleet) join(m *nats.Msg) {
	var h hello
	if json.Unmarshal(m.Data, &h) != nil {
		return
	}
	why := f.refuses(&h)
	f.mu.Lock()
	defer f.mu.Unlock()
	if why != "" {
		f.refused[h.Name] = why
	} else {
		f.here[h.Epoch] = &presence{h, time.Now()}
	}
	respond(m, welcome{Refused: why})
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// refuses returns the reason why an agent cannot be used; empty if it can.
func (f *Fleet) refuses(h *hello) string {
	switch {
	case h.Protocol != protocol || h.Version != f.o.Version:
		return fmt.Sprintf("agent %s has version %s (protocol %d), the coordinator %s (protocol %d): use the same "+
			"build", h.Name, h.Version,
			h.Protocol, f.o.Version, protocol)
	case len(f.o.Names) > 0 && !slices.Contains(f.o.Names, h.Name):
		return fmt.Sprintf("agent %s: the coordinator waits for %s", h.Name, strings.Join(f.o.Names, ", "))
	}
	return ""
}

// clock answers a clock message. The answer has the times at which the message was received and answered.
func (f *Fleet) clock(m *nats.Msg) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), uint64(crew.Monotonic()))
	// an error does not matter: an agent without an answer asks again
	_ = m.Respond(binary.LittleEndian.AppendUint64(b, uint64(crew.Monotonic())))
}

// present returns the agents that announced themselves recently, sorted by name.
func (f *Fleet) present() (all []hello) {
	f.mu.Lock()
	defer f.mu.Unlock()
	byName := map[string]*presence{}
	for epoch, p := range f.here {
		if time.Since(p.heard) > gone {
			delete(f.here, epoch)
		} else if o := byName[p.Name]; o == nil || o.heard.Before(p.heard) {
			byName[p.Name] = p // a restarted agent replaces its earlier self
		}
	}
	for _, p := range byName {
		all = append(all, p.hello)
	}
	slices.SortFunc(all, func(a, b hello) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// wait returns the agents of a run, once enough have joined.
func (f *Fleet) wait(ctx context.Context) ([]hello, error) {
	late, again := time.After(f.o.Join), time.Tick(gone/4)
	said := ""
	for {
		here := f.present()
		if len(here) >= f.o.Count && f.answer(here[:f.o.Count]) {
			return here[:f.o.Count], nil
		}
		if line := f.attendance(here); line != said {
			f.o.Say(line)
			said = line
		}
		select {
		case <-f.changed:
		case <-again:
		case <-late:
			return nil, fmt.Errorf("not all agents have joined within %s: %s", f.o.Join, f.attendance(here))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// answer tells whether all these agents still answer. It forgets those that do not.
func (f *Fleet) answer(here []hello) bool {
	all := true
	for _, h := range here {
		if _, err := ask[answer](f.nc, orderSubject+h.Epoch, order{Do: doStop}, orderTimeout); errors.Is(err,
			nats.ErrNoResponders) {
			f.mu.Lock()
			delete(f.here, h.Epoch)
			f.mu.Unlock()
			all = false
		}
	}
	return all
}

// attendance returns a line that lists present, missing and refused agents.
func (f *Fleet) attendance(here []hello) string {
	var names, missing, parts []string
	for _, h := range here {
		names = append(names, fmt.Sprintf("%s (%s, %d CPUs)", h.Name, h.Host, h.CPUs))
	}
	for _, name := range f.o.Names {
		if !slices.ContainsFunc(here, func(h hello) bool { return h.Name == name }) {
			missing = append(missing, name)
		}
	}
	if parts = append(parts, fmt.Sprintf("%d of %d agents are there", len(here), f.o.Count)); len(names) > 0 {
		parts[0] += ": " + strings.Join(names, ", ")
	}
	if len(missing) > 0 {
		parts = append(parts, "missing: "+strings.Join(missing, ", "))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, why := range f.refused {
		parts = append(parts, "refused: "+why)
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, "; ")
}
