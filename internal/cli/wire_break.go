package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/wire"
	"hammerlock/internal/witness"
	"hammerlock/topologies"
)

// wireBreak is a fault at a moment: one of messages or of the program, or one of the servers, out of the catalogue.
type wireBreak struct {
	text, name, arg, moment string
	lasts                   time.Duration
	nth, each               int64 // the n-th; each n-th; 0 and 0: the first, of a delay each
	met                     atomic.Int64
	fault                   faults.Fault // without a name: of messages or of the program
}

// messageBreaks are the faults of messages and of the program, and how long they last if nothing is said; 0 = they take
// no time.
var messageBreaks = map[string]time.Duration{"drop-reply": 0, "delay": 50 * time.Millisecond, "cut": 0, "refuse": 0,
	"pause-program": 2 * time.Second, "kill-program": 0}

// serverBreakLasts is how long a fault of servers lasts if nothing is said.
const serverBreakLasts = 2 * time.Second

// refusals are the errors of servers that refuse commands.
var refusals = map[string]string{
	"OOM":      "OOM command not allowed when used memory > 'maxmemory'.",
	"LOADING":  "LOADING Redis is loading the dataset in memory",
	"READONLY": "READONLY You can't write against a read only replica.",
}

// wireScenarios are the scenarios that mean something for a program which makes its own load, as faults at moments.
var wireScenarios = []struct {
	name   string
	faults []string
}{
	{"ambiguous", []string{"cut@granted/10", "cut@released/15"}},
	{"crash", []string{"kill-program@granted:5"}},
	{"cut-off", []string{"delay:1s@granted/20", "delay:1s@extended/5"}},
	{"late-commands", []string{"delay:400ms@read/15", "delay:400ms@released/15"}},
	{"late-holder", []string{"pause-program:2s@granted:5", "pause-program:2s@granted:25"}},
	{"server-hangs", []string{"pause-primary:600ms@granted:5", "pause-primary:600ms@released:15"}},
	{"forgetful", []string{"restart-late@granted:5"}},
}

func wireScenarioNames() (names []string) {
	for _, s := range wireScenarios {
		names = append(names, s.name)
	}
	return names
}

// ofServers are the faults of the catalogue that need no workers, but for one with a grant, and no special servers.
func ofServers() (all []faults.Fault) {
	for _, f := range faults.All {
		on := faults.Scene{Sites: 1, Nodes: 4}
		if n := f.Needs; !f.Service && !n.Processes && !n.Clock && !n.Power &&
			slices.Contains(f.Effect(on).Hits, history.Servers) {
			all = append(all, f)
		}
	}
	return all
}

func breakNames() string {
	var names []string
	for name := range messageBreaks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, f := range ofServers() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func (b *wireBreak) program() bool { return strings.HasSuffix(b.name, "-program") }

// parseBreak reads a fault.
func parseBreak(text string) (*wireBreak, error) {
	b := &wireBreak{text: text}
	what, when, ok := strings.Cut(text, "@")
	b.name, b.arg, _ = strings.Cut(what, ":")
	lasts, known := messageBreaks[b.name]
	if i := slices.IndexFunc(ofServers(), func(f faults.Fault) bool { return f.Name == b.name }); !known && i >= 0 {
		b.fault, lasts, known = ofServers()[i], serverBreakLasts, true
	}
	if !known || !ok {
		return nil, fmt.Errorf("a fault is NAME@MOMENT, as in drop-reply@granted:3; there are %s", breakNames())
	}
	b.lasts = lasts
	d, err := time.ParseDuration(b.arg)
	switch {
	case b.name == "refuse":
		if refusals[b.arg] == "" {
			return nil,
				errors.New("refuse says with what: refuse:OOM@granted, refuse:LOADING@granted or refuse:READONLY@granted")
		}
	case err == nil && d > 0 && lasts > 0:
		b.lasts, b.arg = d, ""
	case b.arg != "" && b.fault.Name == "":
		return nil, fmt.Errorf("%q: only delay, pause-program and faults of servers last, as in delay:500ms@granted",
			b.arg)
	}
	return b, b.when(when)
}

// when reads a moment.
func (b *wireBreak) when(text string) error {
	var number string
	var counted bool
	if b.moment, number, counted = strings.Cut(text, "/"); counted {
		b.each, _ = strconv.ParseInt(number, 10, 32)
	} else if b.moment, number, counted = strings.Cut(text, ":"); counted {
		b.nth, _ = strconv.ParseInt(number, 10, 32)
	}
	switch {
	case !slices.Contains(witness.Moments, b.moment):
		return fmt.Errorf("moment %q: there are %s", b.moment, strings.Join(witness.Moments, ", "))
	case b.name == "refuse" && b.moment == "refused":
		return errors.New("a command is refused before it is executed: @granted, for one that would be granted the lock")
	case counted && b.nth+b.each < 1:
		return fmt.Errorf("%q: :3 is the third such moment, /10 every tenth", number)
	case !counted && b.name == "delay":
		b.each = 1
	case !counted:
		b.nth = 1
	}
	return nil
}

// hit counts a moment, and tells whether it is one to break.
func (b *wireBreak) hit() bool {
	at := b.met.Add(1)
	return b.each > 0 && at%b.each == 0 || at == b.nth
}

// scene is where faults of servers are to happen.
func (o *wireOptions) scene() faults.Scene {
	t := o.topology
	return faults.Scene{Topology: t.Name, Sites: t.Sites, Nodes: t.Nodes, TTL: time.Second, Recovery: t.Recovery,
		Can: t.Can(), Processes: 1}
}

func (b *wireBreak) effect(o *wireOptions) history.Effect {
	switch {
	case b.fault.Name != "":
		return b.fault.Effect(o.scene())
	case b.program():
		return history.Effect{Hits: []history.Party{history.Clients}}
	case b.name == "refuse":
		return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}
	}
	return history.Effect{Hits: []history.Party{history.Links}, Blocks: b.name != "delay"}
}

// breaking is the hook of the proxies; nil if nothing is planned.
func (w *watch) breaking(ctx context.Context) wire.Break {
	for _, b := range w.breaks {
		_, at, _ := strings.Cut(b.text, "@")
		w.faults = append(w.faults, history.Injection{Name: strings.TrimSuffix(b.text, "@"+at), At: "@" + at,
			Effect: b.effect(w.o)})
	}
	if len(w.breaks) == 0 {
		return nil
	}
	return func(q *wire.Request) *wire.Action {
		asked := q.Return == 0
		if key, _ := w.reader.LockOf(q); !asked && w.reader.Is(faults.Granted, q) {
			select {
			case w.granted <- key:
			default: // no fault waits for a grant
			}
		}
		for n, b := range w.breaks {
			if (b.name == "refuse") == asked && w.reader.Is(b.moment, q) && b.hit() {
				return w.action(ctx, b, n, q)
			}
		}
		return nil
	}
}

// action is a fault as a proxy carries it out.
func (w *watch) action(ctx context.Context, b *wireBreak, n int, q *wire.Request) *wire.Action {
	at := w.clock.Stamp()
	switch {
	case b.fault.Name != "":
		w.breakServers(ctx, b, n, q)
		return nil
	case b.program():
		return &wire.Action{Call: func() { w.breakProgram(b, n) }}
	}
	w.broke(n, at, b.lasts)
	switch b.name {
	case "drop-reply":
		return &wire.Action{Drop: true}
	case "cut":
		return &wire.Action{Cut: true}
	case "refuse":
		return &wire.Action{Refuse: refusals[b.arg]}
	}
	return &wire.Action{Delay: b.lasts}
}

// broke keeps that a fault was there, and was healed after a while.
func (w *watch) broke(n int, at, lasts time.Duration) {
	now := w.clock.Stamp()
	w.keep(n, history.Op{Kind: history.Fault, Call: at, Return: now},
		history.Op{Kind: history.Heal, Call: now + lasts, Return: now + lasts})
}

// keep keeps operations of a fault.
func (w *watch) keep(n int, ops ...history.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, op := range ops {
		op.Worker, op.Key, op.Value, op.Outcome = -1, -1, int64(n), history.OK
		w.ops = append(w.ops, op)
	}
}

// injected leaves faults of a scenario out whose moment never came, as that of an extension: the program does no such
// thing.
func (w *watch) injected() {
	for n := len(w.faults) - 1; n >= 0 && w.scenario != ""; n-- {
		if slices.ContainsFunc(w.ops, func(op history.Op) bool { return op.Value == int64(n) }) {
			continue
		}
		w.faults = slices.Delete(w.faults, n, n+1)
		for i := range w.ops {
			if w.ops[i].Value > int64(n) {
				w.ops[i].Value--
			}
		}
	}
}

func (w *watch) note(what string, err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notes = append(w.notes, fmt.Sprintf("%s: %v", what, err))
	}
}

// breakProgram stops or kills the program.
func (w *watch) breakProgram(b *wireBreak, n int) {
	if w.program == nil {
		return
	}
	at := w.clock.Stamp()
	var err error
	if b.name == "pause-program" {
		if err = w.program.Pause(); err == nil {
			w.broken.Go(func() {
				<-time.After(b.lasts)
				w.note(b.text, w.program.Resume())
			})
		}
	} else {
		w.broken.Add(1) // before it has ended: its end must not be taken for the run's
		defer w.broken.Done()
		err = w.program.Kill()
		w.reader.Crashed(at)
		if err == nil {
			err = w.program.Start()
		}
	}
	if w.note(b.text, err); err == nil {
		w.broke(n, at, b.lasts)
	}
}

// standing is a client that is about to hear of its grant. It is not held up: it has the lock for as long as the
// program works.
func standing() *faults.Caught {
	return &faults.Caught{At: faults.Granted, Go: func() {}, Die: func() {}}
}

// catcher catches clients that are granted a lock.
type catcher struct {
	w    *watch
	lock string
}

func (c catcher) Catch(ctx context.Context, point string, _ int32) (*faults.Caught, error) {
	if point != faults.Granted {
		return nil, fmt.Errorf("a program can be caught when it is granted a lock, not %q", point)
	}
	for {
		select {
		case key := <-c.w.granted:
			if key == c.lock {
				return standing(), nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (catcher) Process(int32) (faults.Process, error) {
	return nil, errors.New("the program's processes are its own")
}

func (catcher) Agent(int32) (faults.Agent, error) {
	return faults.Agent{}, errors.New("the program runs on this machine")
}

// breakServers injects a fault of the catalogue beside the program, and heals it when its time is over.
func (w *watch) breakServers(ctx context.Context, b *wireBreak, n int, q *wire.Request) {
	key, _ := w.reader.LockOf(q)
	sums, _ := w.reader.Sums()
	t := &faults.Target{Scene: w.o.scene(), Topology: w.top, Workers: catcher{w, key}, Arg: b.arg,
		Rand: rand.New(rand.NewPCG(1, uint64(n))),
		TTL:  max(sums.Lease, time.Second), Keys: 1, LockKey: func(int32) string { return key }, Over: func() {}}
	if b.moment == faults.Granted {
		t.Caught = standing()
	}
	w.broken.Go(func() {
		at := w.clock.Stamp()
		_, heal, err := b.fault.Inject(ctx, t)
		now := w.clock.Stamp()
		w.note(b.text, err)
		healed := history.Op{Kind: history.Heal, Call: now, Return: now}
		if heal != nil {
			select {
			case <-time.After(b.lasts):
			case <-ctx.Done():
			}
			healed.Call = w.clock.Stamp()
			w.note(b.text, heal(context.WithoutCancel(ctx)))
			healed.Return = w.clock.Stamp()
		}
		w.keep(n, history.Op{Kind: history.Fault, Call: at, Return: now}, healed)
	})
}

// refusedHere says why a fault cannot be injected; empty if it can.
func (b *wireBreak) refusedHere(o *wireOptions, command bool) string {
	switch {
	case b.program() && !command:
		return "it breaks the program, and there is no command"
	case b.fault.Name == "":
		return ""
	case o.topology.Name == "":
		return "it breaks the server, which is possible only where it is ours: with --topology"
	}
	return b.fault.Refused(o.scene(), topologies.Options{Links: true})
}
