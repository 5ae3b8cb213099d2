package beyond_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/beyond"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// TestAWaitThatEndsAsItIsGrantedLeavesNothing releases a lock at about the time at which another worker's wait ends.
// The lock must be free afterwards, whether that worker was granted it or not.
func TestAWaitThatEndsAsItIsGrantedLeavesNothing(t *testing.T) {
	turns := 1500
	if testing.Short() {
		turns = 100
	}
	for _, name := range []string{"postgres", "mysql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := bringUp(t, name, topologies.Options{})
			for _, spec := range beyond.Catalogue.Locks {
				if spec.Engine == top.Spec.Can().Engine && spec.Waits && spec.Broken == "" {
					t.Run(spec.Name, func(t *testing.T) { endsAsGranted(t, top, spec, turns) })
				}
			}
		})
	}
}

func endsAsGranted(t *testing.T, top *topologies.Topology, spec locks.Spec, turns int) {
	holder, _ := client(t, top, spec, 1)
	waiter, _ := client(t, top, spec, 2)
	next, _ := client(t, top, spec, 3)
	r := rand.New(rand.NewPCG(1, 1))
	key := "ends-as-granted-" + spec.Name
	wait := 10 * time.Millisecond
	if slices.Contains([]string{"my-get-lock", "my-for-update"}, spec.Name) {
		wait, turns = time.Second, 3 // the server counts whole seconds
	}
	granted := 0
	for turn := range turns {
		lease, err := take(t.Context(), holder, key)
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 1)
		go func() {
			mine, err := waiter.(locks.Patient).AcquireWithin(t.Context(), key, ttl, wait)
			if err == nil {
				granted++
				err = waiter.Release(t.Context(), mine)
			}
			told <- err
		}()
		<-time.After(wait - 2*time.Millisecond + time.Duration(r.Int64N(int64(4*time.Millisecond))))
		if err := holder.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		if err := <-told; err != nil && !errors.Is(err, locks.ErrBusy) {
			t.Fatal(err)
		}
		mine, err := next.Acquire(t.Context(), key, ttl)
		if err != nil {
			t.Fatalf("turn %d: nobody has the lock, and it is not granted: %v", turn, err)
		}
		if err := next.Release(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d waits were granted", granted, turns)
}
