package hammerlock_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestManifests runs the tests of deploy/check, a module of its own with the types of Kubernetes and of Compose. It takes half a
// minute to compile, and so it is left out with -short.
func TestManifests(t *testing.T) {
	if testing.Short() {
		t.Skip("the types of Kubernetes take half a minute to compile")
	}
	t.Parallel()
	in := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = "deploy/check"
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		return cmd.CombinedOutput()
	}
	if out, err := in("mod", "download"); err != nil {
		t.Skipf("the types of Kubernetes cannot be downloaded: %v\n%s", err, out)
	}
	if out, err := in("test", "-count", "1", "./..."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
