package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/tools/kept"
	"hammerlock/topologies"
)

// TestEveryWaiterIsCompared: each lock that waits by itself is among the strategies.
func TestEveryWaiterIsCompared(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // no connection is made
	defer func() { _ = client.Close() }()
	waiters := 0
	for _, spec := range known.Locks {
		lock, err := spec.Open(locks.Env{
			Sites: []redis.UniversalClient{client}, Places: []*topologies.Site{new(topologies.Site)},
			Process: &locks.Process{},
			Rand:    rand.New(rand.NewPCG(1, 1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		// readers would be another comparison
		if _, waits := lock.(locks.Waiter); waits && spec.Broken == "" && !spec.Claims.Readers {
			waiters++
			library, _, _ := strings.Cut(spec.Name, "-") // options do not change how it waits
			if !slices.ContainsFunc(kept.Strategies, func(s kept.Strategy) bool {
				return s.Lock == library && s.Backoff == 0
			}) {
				t.Errorf("%s waits by itself and is not compared", spec.Name)
			}
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
	if waiters == 0 {
		t.Error("no lock waits by itself")
	}
}
