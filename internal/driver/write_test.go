package driver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"hammerlock/internal/live"
)

// TestALineIsItsJSON: the handwritten encoder writes the same as encoding/json.
func TestALineIsItsJSON(t *testing.T) {
	t.Parallel()
	wait := int64(2500)
	for _, m := range []request{
		{ID: 1, Op: opPing}, {ID: 2, Op: opAcquire, Worker: 3, Key: "hammerlock:{page-7}:lock", TTL: 5000,
			Wait: new(int64)},
		{ID: 1 << 60, Op: opAcquire, Worker: 3, Key: "k", TTL: 1, Wait: &wait},
		{ID: 3, Op: opReenter, Key: `quote " and \`, Hold: 2},
		{ID: 4, Op: opExtend, Hold: 2, TTL: -1}, {ID: 5, Op: opCancel, Of: 4},
		{ID: 6, Op: opAcquire, Key: "žluť\n\x00\xff<&>\u2028", Wait: new(int64)},
		{ID: 8, Op: opAcquire, Key: "a", Keys: []string{"a", "b"}, Wait: new(int64)},
		{ID: 9, Op: opAcquire, Key: "a", Mode: reading, Wait: new(int64)},
		{ID: 10, Op: opAcquire, Key: "a", Permits: 2, Wait: new(int64)},
		{ID: 7, Op: opOpen, Topology: "single", Sites: []site{{Host: "h", Port: 1, Addrs: []string{"h:1"}}}},
	} {
		want, err := json.Marshal(m)
		got, failed := m.line([]byte("before\n"))
		if err != nil || failed != nil || string(got) != "before\n"+string(want)+"\n" {
			t.Errorf("got %q, %v, want %s, %v", got, failed, want, err)
		}
	}
}

// TestAPlainAnswerIsItsJSON: the handwritten parser reads the same as encoding/json, from whole lines and from lines
// with lost or doubled bytes.
func TestAPlainAnswerIsItsJSON(t *testing.T) {
	t.Parallel()
	read := 0
	for _, line := range []string{
		`{"id":1,"ok":true}`, `{"id": 21, "ok": true, "token": "8f0a", "tried_ms": 0}`,
		`{"id":18446744073709551615,"busy":true,"token":"a,b}c"}`,
		`{"id":7,"lost":true}`, `{"id":0,"error":"no \\ way"}`, `{"id":1,"ok":true,"token":"caf\u00e9","token":""}`,
		`{"id":3,"ok":true,"id":4}`, `{"ID":3,"ok":false}`,
	} {
		for at := range line {
			for _, text := range []string{line, line[:at] + line[at+1:], line[:at] + line[at:at+1] + line[at:]} {
				var by, want message
				if text[0] != '{' || !by.plain([]byte(text[1:])) {
					continue
				}
				read++
				if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(by, want) {
					t.Errorf("%s: got %+v, want %+v, %v", text, by, want, err)
				}
			}
		}
	}
	if read < 100 {
		t.Errorf("%d answers were plain", read)
	}
}

// TestManyWorkersAtOnce: each of the requests in one write gets its answer.
func TestManyWorkersAtOnce(t *testing.T) {
	t.Parallel()
	p, err := started(t, "right")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			l, key := p.Worker(nil), fmt.Sprint("k", i)
			for range 50 {
				lease, err := l.Acquire(t.Context(), key, time.Minute)
				if err == nil {
					err = l.Release(t.Context(), lease)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	live.Wait(t, "that no call is left", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.calls) == 0 && !p.writing
	})
}
