package hammerlock_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestOwnLock runs the tests of examples/own-lock, a module of its own, with the modules that this one has already. With
// -short they are shorter, too.
func TestOwnLock(t *testing.T) {
	t.Parallel()
	args := []string{"test", "-C", "examples/own-lock", "-count", "1"}
	if testing.Short() {
		args = append(args, "-short")
	}
	cmd := exec.Command("go", append(args, "./...")...)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
