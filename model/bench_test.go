package model

import (
	"testing"
	"time"

	"hammerlock/history"
)

// long makes a page of holds that are granted, extended and released in turn. Before every wrong-th release, the
// previous hold releases again and frees the lock.
func long(holds, wrong int) *Page {
	p := &Page{Rules: Rules{Expires: true, Owned: true, Single: true, Rate: 0.001, Round: 2 * time.Millisecond}}
	id, at := history.ID(0), time.Duration(0)
	add := func(kind Kind, hold int32, from, to time.Duration) {
		id++
		p.Calls = append(p.Calls, Call{ID: id, Hold: hold, Kind: kind, From: at + from*time.Microsecond,
			To: at + to*time.Microsecond, TTL: 300 * time.Millisecond})
	}
	for i := range holds {
		h := int32(i)
		p.Holds = append(p.Holds, Hold{})
		add(Grant, h, 0, 200)
		add(Extend, h, 300, 400)
		if wrong > 0 && i%wrong == wrong-1 {
			add(Release, h-1, 500, 600)
			add(Lost, h, 700, 800)
		} else {
			add(Release, h, 700, 900)
		}
		at += time.Millisecond
	}
	return p
}

func BenchmarkExplain(b *testing.B) {
	for name, wrong := range map[string]int{"right": 0, "foreign releases": 100} {
		b.Run(name, func(b *testing.B) {
			p := long(300_000, wrong)
			mistakes := 0
			if wrong > 0 {
				mistakes = 300_000 / wrong
			}
			for b.Loop() {
				s := Explain(p, Bounds{})
				if s.Status != Explained || s.Cost.Deviations() != mistakes {
					b.Fatalf("status %d, %v", s.Status, s.Cost)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(p.Calls)), "ns/call")
		})
	}
}
