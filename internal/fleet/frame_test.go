package fleet

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// frames cuts a random stream of operations into frames, as an agent would.
func frames(r *rand.Rand, n int) (all [][]byte, ops []history.Op) {
	var f frame
	for i := range n {
		at := time.Duration(i) * time.Millisecond
		op := history.Op{ID: history.ID(1<<40 | i + 1), Kind: history.Acquire, Call: at,
			Return: at + time.Duration(1+r.ExpFloat64()*5e5), Until: at + time.Second,
			Outcome: history.OK, Worker: int32(i % 4), Process: 1}
		if op.Hold = op.ID; r.IntN(3) == 0 {
			op.Kind, op.Began, op.Released, op.Until, op.Hold = history.Visit, at, op.Return-1, at, history.ID(1<<40|1)
		}
		ops = append(ops, op)
	}
	slices.SortFunc(ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	for i, op := range ops {
		f.Ops = append(f.Ops, op)
		if last := i == n-1; last || r.IntN(10) == 0 {
			f.Run, f.Agent, f.Number, f.UpTo = "r", "e", uint64(len(all)+1), op.Return
			if last {
				f.UpTo = history.Forever
			}
			b, _ := f.put()
			all, f = append(all, b), frame{}
		}
	}
	return all, ops
}

// TestFramesAreTakenOnce sends frames several times, in disorder, some of them broken. Each frame is taken once, in
// order.
func TestFramesAreTakenOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all, ops := frames(r, 500)
	a := &agent{host: &host{}, r: &run{f: &Fleet{o: Options{MaxSlack: time.Second}}}, feed: &history.Feed{}}
	a.track.same = true
	a.scale.track = &a.track
	for a.received < uint64(len(all)) {
		b := bytes.Clone(all[min(int(a.received)+r.IntN(5), len(all)-1)])
		if r.IntN(4) == 0 {
			b = all[r.IntN(int(a.received)+1)]
		}
		if r.IntN(5) == 0 {
			b = bytes.Clone(b)
			b[r.IntN(len(b))] ^= 1
			if _, err := parseFrame(b); err == nil {
				t.Fatal("a broken frame was read")
			}
			continue
		}
		f, err := parseFrame(b)
		if err != nil {
			t.Fatal(err)
		}
		a.take(&f)
	}
	var got []history.Op
	m := history.NewMerge(history.NewClock(time.Hour), nil)
	m.Feeds = []*history.Feed{a.feed}
	m.Drain(func(op *history.Op) { got = append(got, *op) })
	if !slices.Equal(got, ops) {
		t.Errorf("%d operations came of %d", len(got), len(ops))
	}
}

// TestLatenciesLoseNothing measures operations directly, and after three agents have sent them in frames. The records,
// with their histograms, are equal byte by byte.
func TestLatenciesLoseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var direct []history.Op
	var feeds []*history.Feed
	for range 3 {
		all, ops := frames(r, 2000)
		direct = append(direct, ops...)
		a := &agent{host: &host{}, r: &run{f: &Fleet{}}, feed: &history.Feed{}}
		a.track.same = true
		a.scale.track = &a.track
		for _, b := range all {
			f, err := parseFrame(b)
			if err != nil {
				t.Fatal(err)
			}
			a.take(&f)
		}
		feeds = append(feeds, a.feed)
	}
	slices.SortStableFunc(direct, func(a, b history.Op) int { return int(a.Return - b.Return) })
	record := func(each func(func(*history.Op))) []byte {
		var log bytes.Buffer
		m := measure.NewMeter(measure.Options{Workers: 4, Keys: 1, To: time.Hour, Excludes: true, Log: &log,
			Started: time.Unix(0, 0)})
		each(m.Observe)
		m.Finish()
		var run results.Run
		m.Summarize(&run, results.Usage{})
		b, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		return append(b, log.Bytes()...)
	}
	want := record(func(observe func(*history.Op)) {
		for i := range direct {
			observe(&direct[i])
		}
	})
	got := record(func(observe func(*history.Op)) {
		m := history.NewMerge(history.NewClock(time.Hour), nil)
		m.Feeds = feeds
		m.Drain(observe)
	})
	if !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
