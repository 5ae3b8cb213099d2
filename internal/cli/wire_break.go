package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
	"hammerlock/internal/witness"
)

// wireBreak is a fault at a moment.
type wireBreak struct {
	text, name, moment string
	lasts              time.Duration
	nth, each          int // the n-th; each n-th; 0 and 0: the first, of a delay each
}

// breakKinds are the faults of wire, and how long they last if nothing is said.
var breakKinds = []struct {
	name  string
	lasts time.Duration // 0 = it takes no time
}{{"drop-reply", 0}, {"delay", 50 * time.Millisecond}, {"cut", 0}, {"pause-program", 2 * time.Second}, {"kill-program", 0}, {"kill-server", 0}, {"pause-server", 2 * time.Second}}

func breakNames() string {
	var names []string
	for _, k := range breakKinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

func (b *wireBreak) program() bool { return strings.HasSuffix(b.name, "-program") }
func (b *wireBreak) server() bool  { return strings.HasSuffix(b.name, "-server") }

// breaking reads a fault.
func (o *wireOptions) breaking(text string) error {
	b := wireBreak{text: text}
	what, when, ok := strings.Cut(text, "@")
	name, lasts, timed := strings.Cut(what, ":")
	i := slices.IndexFunc(breakKinds, func(k struct {
		name  string
		lasts time.Duration
	}) bool {
		return k.name == name
	})
	if i < 0 || !ok {
		return fmt.Errorf("a fault is NAME@MOMENT, as in drop-reply@granted:3; there are %s", breakNames())
	}
	b.name, b.lasts = name, breakKinds[i].lasts
	if timed {
		d, err := time.ParseDuration(lasts)
		if err != nil || d <= 0 || b.lasts == 0 {
			return fmt.Errorf("%q: only delay, pause-program and pause-server last, as in %s:500ms@granted", lasts, cmp.Or(map[bool]string{true: name}[b.lasts > 0], "delay"))
		}
		b.lasts = d
	}
	number := ""
	if b.moment, number, ok = strings.Cut(when, "/"); ok {
		b.each, _ = strconv.Atoi(number)
	} else if b.moment, number, ok = strings.Cut(when, ":"); ok {
		b.nth, _ = strconv.Atoi(number)
	}
	switch {
	case !slices.Contains(witness.Moments, b.moment):
		return fmt.Errorf("moment %q: there are %s", b.moment, strings.Join(witness.Moments, ", "))
	case ok && b.nth+b.each < 1:
		return fmt.Errorf("%q: :3 is the third such moment, /10 every tenth", number)
	case !ok && b.name == "delay":
		b.each = 1
	case !ok:
		b.nth = 1
	}
	if b.server() && o.topology.Name == "" {
		return errors.New("it breaks the server, which is possible only where it is ours: with --topology before it")
	}
	o.breaks = append(o.breaks, b)
	return nil
}

// rule is a fault as a proxy carries it out.
func (w *watch) rule(ctx context.Context, b wireBreak, server int) wire.Rule {
	var met atomic.Int64
	n := len(w.faults)
	if server == 0 {
		w.faults = append(w.faults, history.Injection{Name: b.name, At: strings.TrimPrefix(b.text, strings.Split(b.text, "@")[0]), Effect: b.effect()})
	} else {
		n = slices.IndexFunc(w.o.breaks, func(o wireBreak) bool { return o.text == b.text })
	}
	r := wire.Rule{When: func(q *wire.Request) bool {
		if !w.reader.Is(b.moment, q) {
			return false
		}
		at := int(met.Add(1))
		if hit := b.each > 0 && at%b.each == 0 || at == b.nth; !hit {
			return false
		}
		if b.name == "drop-reply" || b.name == "cut" || b.name == "delay" {
			w.broke(n, w.clock.Stamp(), b.lasts)
		}
		return true
	}}
	switch b.name {
	case "drop-reply":
		r.Do = wire.DropReply
	case "cut":
		r.Do = wire.CutConnection
	case "delay":
		r.Do = wire.Delay(b.lasts)
	default:
		r.Do = wire.Call(func() { w.breakIt(ctx, b, n, server) })
	}
	return r
}

func (b *wireBreak) effect() history.Effect {
	switch {
	case b.program():
		return history.Effect{Hits: []history.Party{history.Clients}}
	case b.name == "kill-server":
		return history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: true}
	case b.name == "pause-server":
		return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}
	}
	return history.Effect{Hits: []history.Party{history.Links}}
}

// broke keeps that a fault was there.
func (w *watch) broke(n int, at, lasts time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Stamp()
	w.ops = append(w.ops, history.Op{Kind: history.Fault, Worker: -1, Key: -1, Value: int64(n), Call: at, Return: now, Outcome: history.OK},
		history.Op{Kind: history.Heal, Worker: -1, Key: -1, Value: int64(n), Call: now + lasts, Return: now + lasts, Outcome: history.OK})
}

// breakIt stops or kills the program or the server. What goes on later does so beside.
func (w *watch) breakIt(ctx context.Context, b wireBreak, n, server int) {
	at := w.clock.Stamp()
	var err error
	var heal func() error
	switch b.name {
	case "pause-program":
		err, heal = w.program.Pause(), w.program.Resume
	case "kill-program":
		w.broken.Add(1) // before it has ended: whoever waits for its end must see that it begins again
		err = w.program.Kill()
		w.reader.Crashed(at)
		if err == nil {
			err = w.program.Start()
		}
		w.broken.Done()
	case "kill-server":
		node := w.servers[server].node
		if err = node.Kill(); err == nil {
			err = node.Start(ctx)
		}
	case "pause-server":
		node := w.servers[server].node
		err, heal = node.Pause(), node.Resume
	}
	if err != nil {
		w.mu.Lock()
		w.notes = append(w.notes, fmt.Sprintf("%s: %v", b.text, err))
		w.mu.Unlock()
		return
	}
	if heal != nil {
		w.broken.Go(func() {
			<-time.After(b.lasts)
			if err := heal(); err != nil {
				w.mu.Lock()
				w.notes = append(w.notes, fmt.Sprintf("%s: %v", b.text, err))
				w.mu.Unlock()
			}
		})
	}
	w.broke(n, at, b.lasts)
}
