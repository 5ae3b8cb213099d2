package faults

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// passing is a set of workers that reach a point after some time. No worker reaches a point without an entry.
type passing struct {
	after map[string]time.Duration
	err   error // for points without an entry; nil = the wait goes on
	begun time.Time
}

func (p *passing) Catch(ctx context.Context, point string, _ int32) (*Caught, error) {
	after, comes := p.after[point]
	if !comes && p.err != nil {
		return nil, p.err
	}
	if !comes {
		after = time.Hour
	}
	if !sleep(ctx, time.Until(p.begun.Add(after))) {
		return nil, ctx.Err()
	}
	return &Caught{At: point, Go: func() {}}, nil
}

func (*passing) Process(int32) (Process, error) { return nil, errNoNode }
func (*passing) Agent(int32) (Agent, error)     { return Agent{}, errNoNode }

// TestALockThatRefusesWithoutReplicas: some locks refuse all workers while their replicas are missing. Such a
// lock is distinguished from three others: a lock that grants late, a lock that no worker requests, and a lock
// whose holder stays.
func TestALockThatRefusesWithoutReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		workers       passing
		caught, fails bool
		held          []string // by page: its value at each look; the last value stays
	}{
		"granted": {
			passing{after: map[string]time.Duration{Granted: 0, Refused: 0}}, true, false, nil,
		},
		"granted late": {passing{after: map[string]time.Duration{Granted: 4 * time.Second}},
			true, false, nil},
		"refused": {passing{after: map[string]time.Duration{Refused: 0}}, false, false, nil},
		"refused by tries": {passing{after: map[string]time.Duration{Refused: 0}}, false, false,
			[]string{"a", "b"}},
		"refused by a holder": {passing{after: map[string]time.Duration{Refused: 0}}, false, true, []string{"a"}},
		"granted after a holder": {passing{after: map[string]time.Duration{Refused: 0, Granted: 6 * time.Second}},
			true, false, []string{"a"}},
		"no worker": {passing{}, false, true, nil},
		"caught with a grant only": {
			passing{after: map[string]time.Duration{Granted: 4 * time.Second}, err: errors.New("no point")},
			true, false, nil,
		},
		"caught nowhere": {passing{err: errors.New("no point")}, false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.workers.begun = time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), catchTimeout)
				defer cancel()
				target := &Target{Workers: &c.workers, TTL: time.Minute}
				caught, err := target.grantedOrRefused(ctx, func(int32) (held string, here bool) {
					if len(c.held) > 0 {
						held = c.held[0]
						c.held = c.held[min(1, len(c.held)-1):]
					}
					return held, true
				})
				if (caught != nil) != c.caught || (err != nil) != c.fails {
					t.Errorf("got %+v, %v", caught, err)
				}
				if took := time.Since(c.workers.begun); took > catchTimeout || name == "refused" && took != refusing {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
