package drivers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"hammerlock/history"
	"hammerlock/internal/cli"
	"hammerlock/internal/live"
	"hammerlock/results"
)

// TestWireReadsDrivers observes the network traffic of a verified run of each driver. The traffic alone must show
// exactly the grants and releases that the run has recorded. Except at night, one driver for each language is
// enough.
func TestWireReadsDrivers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	t.Parallel()
	verify := filepath.Join(t.TempDir(), "verify")
	if text, err := exec.Command("go", "build", "-o", verify, "hammerlock/cmd/verify").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for name, command := range commands {
		if !slices.Contains([]string{"redis-py", "redlock", "symfony", "go-redislock"}, name) && !live.Nightly() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			driver := command(t)
			live.Again(t, func(int) string { return watched(t, verify, driver) })
		})
	}
}

// watched observes a run of a driver with "verify wire". It returns a reason if the result is undecided: the driver
// was granted no lock, or the outcome of a call is unknown.
func watched(t *testing.T, verify, driver string) (undecided string) {
	t.Helper()
	inner, outer := t.TempDir(), t.TempDir()
	load := fmt.Sprintf(`exec %s --addr "$REDIS_URL" --lock 'exec:%s' --duration 2s --workers 6 --fault none `+
		`--attempts 1 --out %s -q 2>%[3]s/said`, verify, driver, inner)
	var out, log bytes.Buffer
	code := cli.Verify(t.Context(),
		cli.Env{Args: []string{"wire", "--topology", "single", "--locks", "*lock*", "--out", outer, "--json",
			"-q", "--tui", "off",
			"--", "sh", "-c", load}, Getenv: os.Getenv, Stdout: &out, Stderr: &log})
	var d cli.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || len(d.Runs) != 1 || code == cli.Violation {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out.String(), log.String())
	}
	if said, _ := os.ReadFile(filepath.Join(inner, "said")); bytes.Contains(said,
		[]byte("all keys begin with --prefix")) {
		t.Skip("its keys have names of their own, which the suite does not write to servers of others")
	}
	recorded, unsure := grantsOf(t, inner)
	read, _ := grantsOf(t, outer)
	if unsure > 0 || recorded == [2]int{} {
		return fmt.Sprintf("the driver was granted and gave back %v locks, %d outcomes are unknown", recorded, unsure)
	}
	if read != recorded {
		t.Errorf("grants and releases: the driver's run has %v, read were %v", recorded, read)
	}
	return ""
}

// grantsOf returns the grants and releases of the page with the most grants, in the only saved run of a directory.
// It ignores other pages: before a load, the suite tries the lock on them.
func grantsOf(t *testing.T, dir string) (most [2]int, unsure int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*-*", results.HistoryFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v in %s: %v", files, dir, err)
	}
	h, err := history.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int32][2]int{}
	for i := range h.Ops {
		op := &h.Ops[i]
		n := counts[op.Key]
		switch {
		case op.Kind == history.Acquire && op.Outcome == history.OK:
			n[0]++
		case (op.Kind == history.Release || op.Kind == history.Visit) && op.Outcome == history.OK:
			n[1]++
		case (op.Kind == history.Acquire || op.Kind == history.Release) && op.Outcome == history.Unknown:
			unsure++
		}
		if counts[op.Key] = n; n[0] >= most[0] && op.Key >= 0 {
			most = n
		}
	}
	return most, unsure
}
