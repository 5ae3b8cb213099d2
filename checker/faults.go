package checker

import (
	"fmt"
	"strings"
	"time"

	"hammerlock/history"
)

// window is an injected fault with its heal.
type window struct {
	fault, heal int32 // into Ops; heal is -1 if it was never healed
	from, to    time.Duration
	name        string
	note        string
}

// onClients are faults of workers and of the network. They do not explain a guarantee that a server broke.
var onClients = map[string]bool{
	"stall-worker": true, "crash-worker": true, "stop-process": true, "kill-process": true,
	"drop-reply": true, "delay": true,
}

// onHolders are faults that keep a holder from renewing its lease in time.
var onHolders = map[string]bool{"stop-process": true, "kill-process": true, "crash-worker": true}

// forgetful are faults by which a server loses keys while no other server has them.
var forgetful = map[string]bool{"flush": true, "evict": true, "restart-empty": true, "power-loss": true}

// windows pairs the faults with their heals.
func (c *Case) windows() []window {
	var list []window
	for _, i := range c.events {
		op := &c.Ops[i]
		switch op.Kind {
		case history.Fault:
			w := window{fault: i, heal: -1, from: op.Call, to: history.Forever, name: "a fault", note: c.Notes[op.ID]}
			if n := op.Value; n >= 0 && n < int64(len(c.Faults)) {
				w.name = c.Faults[n].Name
			} else if text, ok := strings.CutPrefix(w.note, history.ByKey); ok {
				w.name, _, _ = strings.Cut(text, ":")
			}
			list = append(list, w)
		case history.Heal:
			for k := range list {
				if w := &list[k]; w.heal < 0 && c.Ops[w.fault].Value == op.Value {
					w.heal, w.to = i, op.Return
				}
			}
		}
	}
	return list
}

// String names the fault with its times.
func (w window) String() string {
	s := fmt.Sprintf("%s from %s", w.name, clock(w.from))
	if w.to != history.Forever {
		s += " to " + clock(w.to)
	}
	if w.note != "" {
		s += ": " + w.note
	}
	return s
}

// active returns the first fault of a kind that was active between two moments.
func active(list []window, from, to time.Duration, kind func(name string) bool) (window, bool) {
	for _, w := range list {
		if kind(w.name) && w.from <= to && w.to >= from {
			return w, true
		}
	}
	return window{}, false
}

func ofServers(name string) bool { return !onClients[name] }
func ofHolders(name string) bool { return onHolders[name] }

// clock writes a time of the run.
func clock(t time.Duration) string {
	if t == history.Forever {
		return "for ever"
	}
	return fmt.Sprintf("%.6fs", t.Seconds())
}

// who names a worker.
func who(worker int32) string {
	if worker < 0 {
		return "the suite"
	}
	return fmt.Sprintf("w%02d", worker)
}

// name names a hold: by its token in a few digits if it has one.
func (h *hold) name() string {
	if h.Token == 0 {
		return "hold " + h.ID.String()
	}
	return fmt.Sprintf("token %04x", h.Token>>48)
}
