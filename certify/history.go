package certify

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ns is a time since the start of the run, or a duration, in nanoseconds; forever is later than any time.
type ns int64

const forever ns = math.MaxInt64

func (t *ns) UnmarshalJSON(text []byte) error {
	if string(text) == `"forever"` {
		*t = forever
		return nil
	}
	return json.Unmarshal(text, (*int64)(t))
}

func plus(t, d ns) ns {
	if t == forever || d == forever || t > forever-d {
		return forever
	}
	return t + d
}

// op is an operation as in the file.
type op struct {
	Kind                                   string `json:"op"`
	ID, Hold, Seen, Token, Outcome, Reason string
	Worker, Key, Process                   int32
	Fence, Value, Permits                  int64
	Call                                   ns `json:"call_ns"`
	Return                                 ns `json:"return_ns"`
	Until                                  ns `json:"until_ns"`
	TTL                                    ns `json:"ttl_ns"`

	rest  *op // in an acquire: the last other operation of its hold; in that operation: the one before it, and so on
	done  bool
	place int // of a store: its position in the page's chain, beginning with 1; 0 = not in the chain
}

// window is a period in which servers may have forgotten grants, or a process was paused. A planned window is a fault
// of the plan, or is explained by such a fault.
type window struct {
	op                       *op
	from, to                 ns
	planned, forgets, pauses bool
}

// History is the history that a certificate is about.
type History struct {
	Format                                 string
	Processes, Sites, Nodes                int
	Session, Fenced, Service, Heeds, named bool
	Claims                                 struct {
		Excludes, Expires, Owned, Renews, Begins, Readers bool
		Permits                                           int64
	}
	Bounds struct {
		Slack    ns `json:"slack_ns"`
		Round    ns `json:"round_ns"`
		Linger   ns `json:"linger_ns"`
		Recovery ns `json:"recovery_ns"`
		Gap      ns `json:"gap_ns"`
		Rate     float64
		Doubts   []struct {
			Own    ns `json:"own_ns"`
			Offset ns `json:"offset_ns"`
		}
	}
	Faults []struct {
		To     ns   `json:"to_ns"`
		ByHand bool `json:"by_hand"`
		Effect struct {
			Hits   []string
			Loses  string
			Blocks bool
		}
	}
	End     string
	list    []*op // in the order of calls
	ops     map[string]*op
	windows []window
	crashes map[int32][]ns // by worker
	takes   map[string]*op // by ID of a shared hold: the upgrade that may have replaced it
	finals  map[int32]*op  // by page
	pages   map[int32]*page
}

// Read reads a history in JSON lines.
func Read(r io.Reader) (*History, error) {
	h := &History{ops: map[string]*op{}, crashes: map[int32][]ns{}, takes: map[string]*op{}, finals: map[int32]*op{},
		pages: map[int32]*page{}}
	h.Claims.Excludes = true
	words, in := map[string]string{}, bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), 2<<20)
	for n := 1; in.Scan(); n++ {
		o, err := &op{Key: -1, Return: forever}, error(nil)
		if n > 1 && len(in.Bytes()) > 0 {
			err = json.Unmarshal(in.Bytes(), o)
		}
		switch {
		case n == 1 || o.Kind == "" && len(in.Bytes()) > 0: // header and end
			err = json.Unmarshal(in.Bytes(), h)
		case o.Kind == "":
		case h.ops[o.ID] != nil || o.ID == "" || o.Return < o.Call:
			err = errors.New("an id twice or none, or a return before its call")
		default:
			for _, s := range [...]*string{&o.Kind, &o.Outcome, &o.Reason, &o.Hold, &o.Seen, &o.Token} {
				if _, known := words[*s]; !known {
					words[*s] = *s
				}
				*s = words[*s]
			}
			if o.Kind == "release" && o.Outcome == "failed" && !o.denies() && o.Reason != "conflict" {
				o.Outcome = "unknown" // the last of several commands had an error: it tells nothing of the others
			}
			h.list, h.ops[o.ID] = append(h.list, o), o
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the history: %w", n, err)
		}
	}
	if err := in.Err(); err != nil || h.Format != "hammerlock-history" {
		return nil, errors.Join(errors.New("no history of the format hammerlock-history"), err)
	}
	slices.SortStableFunc(h.list, func(a, b *op) int { return cmp.Compare(a.Call, b.Call) })
	h.Claims.Excludes = h.Claims.Excludes || h.Claims.Permits > 0 || h.Claims.Readers
	h.bind()
	return h, nil
}

// bind links the operations of each hold, and finds the windows.
func (h *History) bind() {
	open, tokens := map[int64]int{}, map[string][]*op{}
	for _, o := range h.list {
		if own := tokens[o.Token]; o.Kind == "extend" && o.Hold == "" && len(own) == 1 { // an extension by a watchdog
			o.Hold, o.Key = own[0].ID, own[0].Key
		}
		a := h.acquire(o)
		if a != nil && a != o {
			o.rest, a.rest = a.rest, o
		}
		h.named = h.named || o.Seen != "" && o.Kind != "acquire" && o.Kind != "role"
		switch w := (window{op: o, from: o.Call, to: o.Return}); o.Kind {
		case "acquire":
			if a == o && o.Token != "" && o.Outcome != "failed" {
				tokens[o.Token] = append(tokens[o.Token], o)
			}
			if o.Seen != "" && o.Outcome != "failed" {
				h.takes[o.Seen] = o
			}
		case "crash":
			h.crashes[o.Worker] = append(h.crashes[o.Worker], o.Call)
		case "final":
			h.finals[o.Key] = o
		case "incident", "role", "gap":
			w.pauses = o.Kind == "gap"
			w.forgets = !w.pauses && (h.Nodes == 0 || o.Value < int64(h.Nodes)) &&
				(h.Sites < 2 || o.Value < int64(h.Sites))
			h.windows = append(h.windows, w)
		case "fault":
			f := h.Faults[o.Value]
			if w.planned, w.to = true, max(w.to, f.To); f.ByHand || h.End == "partial" {
				w.to = forever
			}
			unknown := len(f.Effect.Hits) == 0
			cut := h.Session && f.Effect.Blocks && slices.Contains(f.Effect.Hits, "links") // it may end sessions
			w.forgets = unknown || f.Effect.Loses != "" || cut
			w.pauses = unknown || slices.Contains(f.Effect.Hits, "clients") ||
				slices.Contains(f.Effect.Hits, "holders")
			h.windows, open[o.Value] = append(h.windows, w), len(h.windows)+1
		case "heal":
			if n := open[o.Value]; n > 0 && o.Outcome != "failed" {
				h.windows[n-1].to = o.Return
			}
		}
	}
	h.failovers()
	recovery := cmp.Or(h.Bounds.Recovery, 5e9)
	for i, w := range h.windows { // a fault explains a change of role or a pause
		for _, f := range h.windows {
			explains := w.op.Kind == "role" && f.forgets || w.pauses && f.pauses
			if f.op.Kind == "fault" && f.from <= w.to && w.from <= plus(f.to, recovery) && explains {
				h.windows[i].planned = true
			}
		}
	}
}

// mostFailover is how long a former primary may not know of the new one.
const mostFailover ns = 10e9

// failovers extends the window of a promotion until the former primary follows the new one. Until then the former
// primary goes on serving, and its grants will be lost.
func (h *History) failovers() {
	for _, w := range h.windows {
		if w.op.Kind != "role" || w.op.Seen == "" {
			continue
		}
		for i, p := range h.windows {
			if w.op.Seen == p.op.ID && w.from <= plus(p.op.Return, mostFailover) {
				h.windows[i].to = max(p.to, w.to)
			}
		}
	}
}
