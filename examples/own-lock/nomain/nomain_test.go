// Package nomain has no TestMain: its test must say so.
package nomain

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"hammerlock/hammertest"
	"hammerlock/history"
	"hammerlock/locks/catalogue"
)

func TestItSaysThatMainIsMissing(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlayed$")
	cmd.Env = append(os.Environ(), "OWN_LOCK_PLAYED=yes")
	out, err := cmd.CombinedOutput()
	if want := "func TestMain(m *testing.M) { hammertest.Main(m) }"; err == nil ||
		!strings.Contains(string(out), want) {
		t.Errorf("%v, want a failure that says %q:\n%s", err, want, out)
	}
}

func TestPlayed(t *testing.T) {
	if os.Getenv("OWN_LOCK_PLAYED") == "" {
		t.Skip("played by another test")
	}
	lease, _ := catalogue.Find("lease")
	hammertest.Explore(t, lease.Open, hammertest.Config{Claims: history.Claims{Excludes: true}})
}
