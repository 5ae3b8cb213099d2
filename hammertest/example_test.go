package hammertest_test

import (
	"flag"
	"fmt"
	"testing"

	"hammerlock/explore"
	"hammerlock/hammertest"
	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
	"hammerlock/scenarios"
)

func TestMain(m *testing.M) { hammertest.Main(m) }

// open opens your lock; here it is the lock "lease" of the catalogue.
func open(e locks.Env) (locks.Lock, error) {
	lease, _ := catalogue.Find("lease")
	return lease.Open(e)
}

var claims = history.Claims{Excludes: true, Expires: true, Owned: true}

// play runs a test as the go command would, under the name of the example.
func play(name string, test func(*testing.T)) string {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	_ = verbose.Set("false")
	passed := testing.RunTests(func(string, string) (bool, error) {
		return true, nil
	}, []testing.InternalTest{{Name: name, F: test}})
	_ = verbose.Set(was)
	if passed {
		return "PASS"
	}
	return "FAIL"
}

// Write such a test in your own package, together with func TestMain(m *testing.M) { hammertest.Main(m) }. Without
// Scenarios, it runs all scenarios that suit the lock.
func ExampleVerify() {
	contention, _ := scenarios.Find("contention")
	TestMyLock := func(t *testing.T) {
		hammertest.Verify(t, open, hammertest.Config{Claims: claims, Scenarios: []scenarios.Scenario{contention}})
	}
	fmt.Println(play("ExampleVerify", TestMyLock))
	// Output: PASS
}

// It needs no server: two clients, every order of their messages with at most one deviation.
func ExampleExplore() {
	bounds := explore.Defaults
	bounds.Deviations = 1
	TestMyLock := func(t *testing.T) {
		hammertest.Explore(t, open, hammertest.Config{Claims: claims, Options: &bounds})
	}
	fmt.Println(play("ExampleExplore", TestMyLock))
	// Output: PASS
}
