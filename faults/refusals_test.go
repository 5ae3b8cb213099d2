package faults

import (
	"testing"
	"time"

	"hammerlock/topologies"
)

// TestMemoryRunsOutByPolicy: a policy that keeps frequently used keys does not evict a lock.
func TestMemoryRunsOutByPolicy(t *testing.T) {
	scene := Scene{Topology: "single", Sites: 1, Nodes: 1, Can: topologies.Spec{}.Can()}
	for text, right := range map[string]bool{"evict": true, "evict:volatile-ttl": true, "evict:allkeys-random": true,
		"evict:volatile-lfu": false, "no-writes:OOM": true, "no-writes:LOADING": false} {
		if _, mistakes := Parse([]string{text}, scene, 5*time.Second, 1); (len(mistakes) == 0) != right {
			t.Errorf("%s: %v", text, mistakes)
		}
	}
}

// TestWhatIsOverAtOnceIsNotHealed: the heal in a plan is only for faults that go on.
func TestWhatIsOverAtOnceIsNotHealed(t *testing.T) {
	scene := Scene{Topology: "single", Sites: 1, Nodes: 1, Can: topologies.Spec{}.Can()}
	steps, mistakes := Parse([]string{"script-flush@1s", "no-writes@2s", "heal@3s"}, scene, 5*time.Second, 1)
	if len(mistakes) > 0 || len(steps) != 2 || steps[0].To != 0 || steps[1].To != 3*time.Second {
		t.Errorf("got %+v, %v", steps, mistakes)
	}
	if _, mistakes := Parse([]string{"script-flush@1s", "heal@3s"}, scene, 5*time.Second, 1); len(mistakes) == 0 {
		t.Error("what is over was healed")
	}
}
