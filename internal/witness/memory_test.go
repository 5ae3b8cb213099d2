package witness

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/wire"
)

// visitKeys reads visits to one key after the other: a grant, a refused try, a release. Each hundredth lease ends
// before its release.
func visitKeys(r *Reader, epoch time.Time, at time.Duration, from, to int, alone bool) time.Duration {
	for i := from; i < to; i++ {
		key, token := fmt.Sprint("lock:", i), fmt.Sprint("t", i)
		set := &wire.Request{
			Conn: 1, Client: "shop", Number: int64(3 * i), Args: []string{"SET", key, token, "NX", "PX", "1000"},
		}
		again := &wire.Request{
			Conn: 2, Client: "shop", Number: int64(3*i + 1),
			Args: []string{"SET", key, token + "'", "NX", "PX", "1000"},
		}
		del := &wire.Request{Conn: 1, Client: "shop", Number: int64(3*i + 2), Args: []string{"DEL", key}}
		ask := func(q *wire.Request, reply wire.Reply, effect ...string) {
			at += 100 * time.Microsecond
			if q.Call = at; !alone {
				r.Sent(q)
			}
			if len(effect) > 0 {
				r.Effect(&wire.Effect{At: at + 50*time.Microsecond, Args: effect})
			}
			at += 100 * time.Microsecond
			if i%1000 == 500 { // the reply is lost
				if q.Return, q.Lost = history.Forever, true; !alone {
					r.Request(q)
				}
				return
			}
			if q.Return, q.Reply = at, reply; !alone {
				r.Request(q)
			}
		}
		ask(set, wire.Reply{Kind: wire.Simple, Text: "OK"}, "SET", key, token, "PXAT",
			strconv.FormatInt(epoch.Add(at+time.Second).UnixMilli(), 10))
		ask(again, wire.Reply{Kind: wire.Nil})
		if i%100 != 99 {
			ask(del, wire.Reply{Kind: wire.Integer, Int: 1}, "DEL", key)
		} else if i > 10_000 {
			// its lease had ended seconds before
			r.Effect(&wire.Effect{At: at, Args: []string{"DEL", fmt.Sprint("lock:", i-10_000)}})
		}
		if i%500 == 0 {
			r.Tick(at)
		}
	}
	return at
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestManyKeys: the memory of a reader is bounded by the number of keys in use, not by the number of all keys so far.
func TestManyKeys(t *testing.T) {
	keys := 60_000
	if live.Nightly() {
		keys = 1_000_000
	}
	epoch := time.UnixMilli(1_700_000_000_000)
	for name, o := range map[string]Options{"a stream alone": {Alone: true, Rolling: true, Most: 1 << 14},
		"a proxy": {Rolling: true, Most: 1 << 14}} {
		o.Locks, o.Epoch = []string{"lock:*"}, epoch
		r := NewReader(o)
		r.Clock(0, 0, 0)
		r.Event(wire.Event{Kind: wire.TapBegan})
		at := visitKeys(r, epoch, 0, 0, keys/2, o.Alone)
		before := heap()
		visitKeys(r, epoch, at, keys/2, keys, o.Alone)
		grown := heap() - before
		if grown > 4<<20 || r.Grants != int64(keys) {
			t.Errorf("%s: %d MB more after %d keys more; %d ledgers, %d books, %d pages, %d grants by token, "+
				"%d workers, %d lanes, %d scripts, %d flights, %d grants",
				name, grown>>20, keys/2, len(r.ledgers), len(r.books), len(r.pages), len(r.grants), len(r.workers),
				len(r.lanes), len(r.scripts), len(r.flights), r.Grants)
		}
		t.Logf("%s: %d KB, then %d KB more", name, before>>10, grown>>10)
		runtime.KeepAlive(r)
	}
}
