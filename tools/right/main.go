// Command right asks the default verify about every right lock on every topology, with one seed. What is known of a
// seed is not asked again. No lock may be accused.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/cli"
	"hammerlock/tools/kept"
)

func main() {
	seed := flag.Uint64("seed", 1, "of every run")
	jobs := flag.Int("jobs", 1, "how many locks at the same time")
	only := flag.String("locks", "", "these locks alone, separated by commas")
	flag.Parse()
	if err := right(context.Background(), *seed, *jobs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// asked is where the answers come together.
type asked struct {
	verify string
	made   kept.Made
	seed   uint64

	mu     sync.Mutex
	known  []*kept.Right
	failed error
}

func right(ctx context.Context, seed uint64, jobs int, only string) error {
	dir, err := os.MkdirTemp("", "right-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	a := &asked{seed: seed}
	var errVerify, errMade error
	a.verify, errVerify = kept.BuildVerify(ctx, dir)
	a.made, errMade = kept.Now(ctx)
	a.known, err = kept.ReadLines[kept.Right](kept.RightFile)
	if err := errors.Join(err, errVerify, errMade); err != nil {
		return err
	}
	todo := slices.DeleteFunc(kept.RightPairs(), func(p kept.Pair) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), p.Lock) ||
			slices.ContainsFunc(a.known, func(k *kept.Right) bool { return k.Pair == p && k.Seed == seed })
	})
	queue := make(chan kept.Pair)
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for p := range queue {
				a.keep(a.ask(ctx, p))
			}
		})
	}
	for _, p := range todo {
		queue <- p
	}
	close(queue)
	wg.Wait()
	return a.failed
}

// ask asks the default verify about a lock.
func (a *asked) ask(ctx context.Context, p kept.Pair) (*kept.Right, error) {
	dir, err := os.MkdirTemp("", "right-")
	if err != nil {
		return nil, err
	}
	wrong := true
	defer func() {
		if wrong {
			fmt.Println("its runs are kept in", dir)
		} else {
			_ = os.RemoveAll(dir)
		}
	}()
	var d cli.Document
	begun := time.Now()
	state, err := kept.Ask(ctx, a.verify, []string{"--topology", p.Topology, "--lock", p.Lock, "--seed", fmt.Sprint(a.seed), "--out", dir}, &d)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", p.Lock, p.Topology, err)
	}
	wrong = state.ExitCode() != cli.Passed && state.ExitCode() != cli.Inconclusive
	r := &kept.Right{Pair: p, Seed: a.seed, Exit: state.ExitCode(), NotRun: len(d.NotRun), Made: a.made,
		Seconds: math.Round(10*time.Since(begun).Seconds()) / 10}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load, _, _ = strings.Cut(string(load), " ")
	}
	all := d.Explored
	for i := range d.Runs {
		all = append(all, d.Runs[i].Judgement())
	}
	for _, j := range all {
		switch status, _ := j.Status(); status {
		case checker.Pass:
			r.Passed++
		case checker.Fail:
			r.Failed = append(r.Failed, j.Scenario)
		default:
			r.Inconclusive = append(r.Inconclusive, j.Scenario)
		}
	}
	return r, nil
}

// keep writes an answer down at once, unless verify broke: then it is asked again by the next run.
func (a *asked) keep(r *kept.Right, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		fmt.Printf("%+v\n", *r)
		switch r.Exit {
		case cli.Violation:
			err = fmt.Errorf("%s on %s with seed %d is accused", r.Lock, r.Topology, r.Seed)
		case cli.Passed, cli.Inconclusive:
		default:
			a.failed = errors.Join(a.failed, fmt.Errorf("%s on %s: exit %d", r.Lock, r.Topology, r.Exit))
			return
		}
		a.known = append(a.known, r)
		slices.SortStableFunc(a.known, func(a, b *kept.Right) int {
			return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Topology, b.Topology))
		})
		err = errors.Join(err, kept.WriteLines(kept.RightFile, a.known))
	}
	a.failed = errors.Join(a.failed, err)
}
