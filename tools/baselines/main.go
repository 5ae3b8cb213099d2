// Command baselines measures what a visit costs without contention: its round trips and commands. It writes the
// costs to results/baselines/costs.json, for all locks on topology "single" or for the named locks. A test compares
// new costs with this file.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

const file = "results/baselines/costs.json"

// cost is what a visit costs if there is only one worker. Such counts vary little.
type cost struct {
	RoundTrips float64 `json:"round_trips"`
	Commands   float64 `json:"commands"`
}

// Short runs miscount, because visits are in progress at their start and end, and because timers are late. If a cost
// differs from the known one by more than tolerance, it is measured again. This happens up to looks times; each run
// is twice as long as the one before.
const (
	tolerance = 0.04
	looks     = 5
)

// beside is the number of locks that are measured at the same time. The counts do not depend on how busy the machine
// is.
const beside = 4

func main() {
	if err := write(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, names []string) error {
	known, err := read()
	if err != nil {
		return err
	}
	got, err := measure(ctx, known, names)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func read() (all map[string]cost, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// measure returns the cost of each lock. It measures all locks, or those in names if there are any. Other locks, and
// those that this server cannot run, keep the known cost in the argument want.
func measure(ctx context.Context, want map[string]cost, names []string) (map[string]cost, error) {
	dir, err := os.MkdirTemp("", "baselines-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range names {
		if _, found := known.Find(name); !found {
			return nil, fmt.Errorf("no lock %q; docs/LOCKS.md lists them", name)
		}
	}
	server, err := topologies.FindServer(ctx, "")
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	got := map[string]cost{}
	var wg sync.WaitGroup
	queue := make(chan locks.Spec)
	for range beside {
		wg.Go(func() {
			var warm harness.Warm
			for lock := range queue {
				c, errLock := measured(ctx, lock, server, &warm, dir, want)
				mu.Lock()
				if err = errors.Join(err, errLock); c != nil {
					got[lock.Name] = *c
				}
				mu.Unlock()
			}
			errWarm := warm.Close()
			mu.Lock()
			err = errors.Join(err, errWarm)
			mu.Unlock()
		})
	}
	for _, lock := range known.Locks {
		if c, measured := want[lock.Name]; len(names) == 0 || slices.Contains(names, lock.Name) {
			queue <- lock
		} else if measured {
			mu.Lock()
			got[lock.Name] = c
			mu.Unlock()
		}
	}
	close(queue)
	wg.Wait()
	return got, err
}

// measured returns the cost of a lock, or the known cost if this server cannot run the lock; nil = that is unknown,
// too.
func measured(ctx context.Context, lock locks.Spec, server topologies.Server, warm *harness.Warm, dir string,
	want map[string]cost) (*cost, error) {
	j := job(ctx, lock, dir)
	if j == nil || lock.Runs(server) != nil {
		if old, known := want[lock.Name]; known {
			return &old, nil
		}
		return nil, nil
	}
	j.Warm = warm
	c, err := ofAVisit(ctx, j, want[lock.Name])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lock.Name, err)
	}
	return &c, nil
}

// job makes the run that measures a lock. It returns nil if the lock cannot run on topology "single", or if it
// grants each page only once.
func job(ctx context.Context, lock locks.Spec, dir string) *harness.Job {
	if lock.Claims.Once {
		return nil
	}
	single, _ := topologies.Find("single")
	p := harness.Default()
	p.Topologies, p.Locks, p.Out, p.Counter = []topologies.Spec{single}, []locks.Spec{lock}, dir, workload.RedisCounter
	if memory, ok := workload.FindCounter("memory"); ok && lock.Counting == locks.TwoSteps {
		p.Counter = memory
	}
	p.Workload.Workers, p.Workload.Seed, p.Workload.Hold, p.Workload.Reenter = 1, 1, 0, 1
	p.Warmup, p.Duration = 50*time.Millisecond, 250*time.Millisecond
	j, err := p.Check(ctx, nil)
	if err != nil || len(j.Combinations) != 1 {
		return nil
	}
	return j
}

// ofAVisit measures the cost of a visit until a result is near the known cost. It then returns the known cost, so
// that noise does not change the file. If no result is near, it returns the medians of all results.
func ofAVisit(ctx context.Context, j *harness.Job, want cost) (cost, error) {
	var trips, commands []float64
	for look := range looks {
		if look > 0 {
			j.Combinations[0].Plan.Duration *= 2
		}
		runs, err := j.Run(ctx, ctx)
		if err != nil {
			return cost{}, err
		}
		if status, text := runs[0].Safety(); status == checker.Fail && j.Combinations[0].Lock.Broken == "" {
			return cost{}, errors.New(text)
		}
		c := runs[0].Cost
		own := strings.HasPrefix(runs[0].Lock, "rueidislock") // the library's own connections are not counted
		switch {
		case c.Commands == nil, c.RoundTrips == nil && !own:
			continue // too short: on a busy machine, the run made no visit
		case own && c.RoundTrips != nil:
			return cost{}, fmt.Errorf("%.2f round trips, and it makes connections of its own", *c.RoundTrips)
		case own:
			c.RoundTrips = new(float64) // saved as zero
		}
		got := cost{*c.RoundTrips, *c.Commands}.rounded()
		if got.near(want) {
			return want, nil
		}
		trips, commands = append(trips, got.RoundTrips), append(commands, got.Commands)
	}
	if len(trips) == 0 {
		return cost{}, fmt.Errorf("%d runs made no visit, or told no cost", looks)
	}
	slices.Sort(trips)
	slices.Sort(commands)
	return cost{trips[len(trips)/2], commands[len(commands)/2]}, nil
}

func (c cost) near(want cost) bool {
	close := func(got, want float64) bool { return math.Abs(got-want) <= tolerance*math.Max(want, 0.25) }
	return close(c.RoundTrips, want.RoundTrips) && close(c.Commands, want.Commands)
}

// rounded rounds to tenths. Smaller fractions come from visits in progress at the start and end of a run. They are
// no real costs, because no lock needs such a fraction of a round trip.
func (c cost) rounded() cost {
	return cost{math.Round(c.RoundTrips*10) / 10, math.Round(c.Commands*10) / 10}
}
