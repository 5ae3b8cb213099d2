// Package fleet is a crew on several machines. The coordinator has a NATS server in it; agents dial out to that, are
// told what to do, and send what they record, which they keep until the coordinator has written it. How far their
// clocks may be off is measured and becomes the history's slack. NATS carries messages and keeps no evidence.
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

// Options say who works for a coordinator.
type Options struct {
	Count    int           // of agents
	Names    []string      // of agents that are waited for; empty = any
	Local    bool          // start them on this machine
	Listen   string        // host:port for agents
	NATS     string        // existing servers that agents join, too, in place of Listen; empty = none
	Login    Login         // for those
	Token    Token         // that agents must have
	Version  string        // that agents must have
	Join     time.Duration // how long agents are waited for
	Timeout  time.Duration // an agent that is silent for so long is lost
	MaxSlack time.Duration // an agent whose clock is known less exactly than half of that cannot be used
	Say      func(string)  // is told who is there and who is missing
}

// Fleet is a coordinator. It serves one run after the other.
type Fleet struct {
	o      Options
	server *server.Server // nil = existing ones are used
	nc     *bus

	mu      sync.Mutex
	here    map[string]*presence // agents by epoch
	refused map[string]string    // by name: why
	changed chan struct{}        // somebody came
	run     *run                 // the last one; nil = there was none
}

// presence is an agent that says that it is there.
type presence struct {
	hello
	heard time.Time
}

// gone is the silence after which a waiting agent is no longer counted: it says hello each second.
const gone = 4 * time.Second

// planMost bounds a message: a plan has the trace of an open loop in it.
const planMost = 32 << 20

// serverTimeout bounds how long the server in the coordinator may take to start.
const serverTimeout = 10 * time.Second

// Open starts a coordinator. The caller closes it.
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

// server are the options of the server for agents.
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

// Address is where agents join.
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

// Close ends the server. Agents that it has not started wait for the next coordinator.
func (f *Fleet) Close() {
	f.nc.Close()
	if f.server != nil {
		f.server.Shutdown()
		f.server.WaitForShutdown()
	}
}

// join takes note of an agent.
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

// refuses says why an agent cannot be used.
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

// clock answers at once when it was asked.
func (f *Fleet) clock(m *nats.Msg) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), uint64(crew.Monotonic()))
	// without an answer the request is sent again
	_ = m.Respond(binary.LittleEndian.AppendUint64(b, uint64(crew.Monotonic())))
}

// present are the agents that are there, by name.
func (f *Fleet) present() (all []hello) {
	f.mu.Lock()
	defer f.mu.Unlock()
	byName := map[string]*presence{}
	for epoch, p := range f.here {
		if time.Since(p.heard) > gone {
			delete(f.here, epoch)
		} else if o := byName[p.Name]; o == nil || o.heard.Before(p.heard) {
			byName[p.Name] = p // one that was started again takes the place of the one before
		}
	}
	for _, p := range byName {
		all = append(all, p.hello)
	}
	slices.SortFunc(all, func(a, b hello) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// wait returns the agents of a run when all are there.
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

// answer tells whether agents are there still, and forgets those that are not: one may have ended since it said hello.
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

// attendance says who is there and who is missing.
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
