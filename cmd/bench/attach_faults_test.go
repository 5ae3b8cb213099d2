package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAttachedFaultsFromOutside injects faults on an attached server. The suite may cut its own connections, and stop
// its own workers and processes. It may slow the server down only if the user allows that.
func TestAttachedFaultsFromOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a run for each fault")
	}
	top := others(t, "single")
	n := top.Nodes[0]
	admit(t, n, "+client|pause")
	stop := monitor(t, n, top.Sites[0].Password())
	verify := func(code []int, want string, args ...string) {
		t.Helper()
		r := attached(t, t.TempDir(), appPassword, "verify",
			append(args, "--addr", "redis://app:"+appPassword+"@"+n.Addr(), "--counter", "topology",
				"--workers", "4", "--processes", "2", "--lease", "500ms", "--duration", "1s")...)
		if !slices.Contains(code, r.code) || !strings.Contains(r.out, want) {
			t.Errorf("%s: exit code %d, want %v and %q in:\n%s", args, r.code, code, want, r.out)
		}
	}
	done := []int{0, 1, 3} // who is stopped for longer than its lease overruns it
	for _, fault := range []string{"delay@100ms,heal@300ms", "cut-holder@200ms",
		"partition:clients/n1@200ms,heal@400ms", "drop-reply@200ms",
		"stall-worker@200ms", "crash-worker@200ms", "stop-process@200ms,heal@400ms", "kill-process@200ms"} {
		name, _, _ := strings.Cut(fault, "@")
		verify(done, "faults: "+name, "--fault", fault)
	}
	verify([]int{2}, "--allow-destructive client-pause allows it", "--fault", "slow-server@200ms")
	verify([]int{2}, "needs servers of the suite's own", "--fault", "kill-primary@200ms")
	if sent := managed(t, n); len(sent) > 0 {
		t.Errorf("sent: %v", sent)
	}
	verify(done, "faults: slow-server", "--fault", "slow-server@200ms,heal@400ms",
		"--allow-destructive", "client-pause")
	for _, line := range stop() {
		if s := strange(line); s != "" {
			t.Fatalf("sent: %s", s)
		}
	}
	if sent := managed(t, n); !slices.Equal(sent, []string{"CLIENT PAUSE"}) {
		t.Errorf("sent: %v, want what was allowed", sent)
	}
}

// TestAttachedRecordSaysWhatIsHidden works as a user who may not ask the server for itself.
func TestAttachedRecordSaysWhatIsHidden(t *testing.T) {
	n := others(t, "single").Nodes[0]
	admit(t, n, "-info", "-hello")
	dir := t.TempDir()
	r := attached(t, dir, appPassword, "bench", "--addr", "redis://app:"+appPassword+"@"+n.Addr(), "--duration",
		"200ms", "--warmup", "0s", "--workers", "2")
	for _, want := range []string{
		"not measured: commands and CPU time of the servers (others may use them, too); roles, " +
			"restarts and replication lag (INFO: NOPERM",
		"settings of the servers (CONFIG GET: NOPERM", "- commands on the servers, - of their CPU",
	} {
		if r.code != 0 && r.code != 3 || !strings.Contains(strings.Join(strings.Fields(r.out), " "), want) {
			t.Errorf("exit code %d, want %q in:\n%s", r.code, want, r.out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "results", "runs", "*", "run.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d records: %v", len(files), err)
	}
	record, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"hidden INFO": "NOPERM`, `"hidden CONFIG GET": "NOPERM`, `"prefix": "hammerlock:`} {
		if !strings.Contains(string(record), want) {
			t.Errorf("no word of %s in the record", want)
		}
	}
}
