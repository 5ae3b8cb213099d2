package history

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// visits makes a history of 32 workers. Every visit is an acquire, a load, a store, a release and its end.
func visits(ops int) *History {
	const workers = 32
	h := &History{Header: Header{Workers: workers, Processes: 1, Keys: 8}, Ops: make([]Op, 0, ops)}
	now, number := time.Duration(0), [workers]ID{}
	var stored [8]ID
	for visit := 0; len(h.Ops)+5 <= ops; visit++ {
		w, key := visit*7%workers, visit%8
		begin, due := now, now-time.Duration(visit%977)
		hold := ID(0)
		for kind := Acquire; kind <= End; kind++ {
			if kind == Extend {
				continue
			}
			number[w]++
			now += time.Duration(900 + visit*31%57)
			op := Op{ID: ID(w+1)<<idLaneShift | number[w], Kind: kind, Worker: int32(w), Key: int32(key), Outcome: OK,
				Due: due, Call: now}
			now += time.Duration(50_000 + visit*7919%41_000)
			op.Return = now
			switch kind {
			case Acquire:
				hold = op.ID
				op.TTL, op.Token, op.Until = 300*time.Millisecond, Hash(fmt.Sprint(visit)), op.Call+300*time.Millisecond
			case Store:
				op.Seen, op.Value, stored[key] = stored[key], int64(visit/8+1), op.ID
			case Load:
				op.Seen, op.Value = stored[key], int64(visit/8)
			case End:
				op.Call, op.Until = begin, begin
			}
			if op.Hold = hold; kind == End {
				op.Hold = 0
			}
			h.Ops = append(h.Ops, op)
		}
	}
	return h
}

// BenchmarkWrite measures one operation in a file, for the goroutine that drains the lanes.
func BenchmarkWrite(b *testing.B) {
	h := visits(100_000)
	for name, open := range map[string]func() io.Writer{
		"memory": func() io.Writer { return io.Discard },
		"file": func() io.Writer {
			f, err := os.Create(filepath.Join(b.TempDir(), "history"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { f.Close() })
			return f
		},
	} {
		b.Run(name, func(b *testing.B) {
			w, err := Create(open(), h.Header)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Add(&h.Ops[n]); err != nil {
					b.Fatal(err)
				}
				if n++; n == len(h.Ops) {
					n = 0
				}
			}
		})
	}
}

// BenchmarkRead measures reading and validating, in ns per operation. It also reports the size of an operation
// in the file.
func BenchmarkRead(b *testing.B) {
	for _, f := range []string{"native", "lines"} {
		for _, ops := range []int{100_000, 1_000_000, 10_000_000} {
			b.Run(fmt.Sprintf("%s/%d", f, ops), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "history")
				size := writeFile(b, path, formats[f].write, ops)
				b.ReportAllocs()
				for b.Loop() {
					h, err := Open(path)
					if err != nil || len(h.Ops) != ops {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ops), "ns/record")
				b.ReportMetric(float64(size)/float64(ops), "bytes/record")
			})
		}
	}
}

func writeFile(b *testing.B, path string, write func(io.Writer, *History) error, ops int) int64 {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := write(f, visits(ops)); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	return info.Size()
}

func BenchmarkValidate(b *testing.B) {
	h := visits(10_000_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMerge measures one operation in a drain, by the number of lanes.
func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{1, 32, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			clock := NewClock(0)
			lanes := make([]*Lane, n)
			for i := range lanes {
				lanes[i] = NewLane(clock, i, int32(i), 1<<12, nil)
			}
			merge := NewMerge(clock, lanes)
			ops, drained := 0, time.Duration(0)
			for b.Loop() {
				l := lanes[uint32(ops)*2654435761%uint32(n)]
				l.Return(l.Call(Load, 1))
				if ops++; ops%1024 == 0 {
					start := time.Now()
					merge.Drain(func(*Op) {})
					drained += time.Since(start)
				}
			}
			b.ReportMetric(float64(drained)/float64(ops), "ns/drained")
		})
	}
}

// BenchmarkJSON measures one operation as JSON, the form in evidence.
func BenchmarkJSON(b *testing.B) {
	op := visits(5).Ops[0]
	text, _ := op.MarshalJSON()
	b.Run("write", func(b *testing.B) {
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			buf = appendOp(buf[:0], &op, "")
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		var l line
		for b.Loop() {
			if err := l.parse(bytes.Clone(text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
