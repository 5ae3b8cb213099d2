package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/results"
	"hammerlock/topologies"
)

// ownLog has what the programs in testdata/wire/meter.py log about themselves, indexed by program.
type ownLog map[string]own

type own struct {
	Grants, Tries, Releases, Late, Most int64
	Waits, Holds                        [][2]float64 // in seconds: at least, and at most, as seen from outside of it
}

// handOffs returns the bounds of every hand-off. A hand-off is part of the wait of the worker that gets the lock.
func (o own) handOffs() [][2]float64 {
	longest := 0.0
	for _, w := range o.Waits {
		longest = max(longest, w[1])
	}
	return [][2]float64{{0, longest}}
}

// within tells whether a percentile of the run agrees with the program's own log. It allows for the rounding of
// histograms. It also allows for a stream that is read late; the argument late is the longest such delay.
func within(got *int64, log [][2]float64, q float64, late time.Duration) bool {
	var least, most []float64
	for _, x := range log {
		least, most = append(least, x[0]), append(most, x[1])
	}
	slices.Sort(least)
	slices.Sort(most)
	n := int(q * float64(len(log)-1))
	lo, hi := 0.95*least[max(n-3, 0)]-late.Seconds(), 1.05*most[min(n+3, len(most)-1)]+late.Seconds()
	return got != nil && lo <= time.Duration(*got).Seconds() && time.Duration(*got).Seconds() <= hi
}

// TestLiveLockNumbers: counts of locks agree with the log of the watched program. The counts come from a proxy and
// from a replication stream, at the same time. Counts that a stream cannot provide are absent.
func TestLiveLockNumbers(t *testing.T) {
	t.Parallel()
	python := live.Python(t, "redis")
	a := testbed.Up(t, "single", topologies.Options{}).Sites[0].Access()
	address, file := "redis://:"+a.Password+"@"+a.Addrs[0], filepath.Join(t.TempDir(), "log")
	watch := func(ctx context.Context, args ...string) (*results.Locks, string) {
		var stdout, stderr lockedBuffer
		Verify(ctx, Env{Args: slices.Concat([]string{"wire", "--addr", address, "--locks", "lock:shop:*",
			"--locks", "lock:*",
			"--out", t.TempDir(), "--json"}, args), Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
		var d Document
		if err := json.Unmarshal([]byte(stdout.String()), &d); err != nil || len(d.Runs) != 1 ||
			d.Runs[0].Locks == nil {
			t.Errorf("%v: %d runs\n%s", err, len(d.Runs), stderr.String())
			return &results.Locks{}, ""
		}
		return d.Runs[0].Locks, stderr.String()
	}
	alone, summary := make(chan *results.Locks), ""
	ctx, end := context.WithCancel(t.Context())
	defer end()
	c := topologies.Access{Addrs: a.Addrs, Password: a.Password}.Site().Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	go func() {
		seen, said := watch(ctx, "--tap-only")
		summary = said
		alone <- seen
	}()
	live.Wait(t, "the tap", func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "state=online")
	})
	seen, said := watch(t.Context(), "--env", "METER_LOG="+file, "--", python, "testdata/wire/meter.py", "4", "60")
	end()
	tapped := <-alone
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, said)
	}
	var log ownLog
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&log); err != nil {
		t.Fatal(err)
	}
	if len(seen.Numbers) != 2 || len(tapped.Numbers) != 2 || len(seen.Hot) != 4 || len(tapped.Hot) != 4 {
		t.Fatalf("rows: %+v\nalone: %+v", seen, tapped)
	}
	for i, name := range []string{"stock", "shop"} { // the patterns are lock:* and lock:shop:*
		agrees(t, name, log[name], seen.Numbers[i], tapped.Numbers[i])
	}
	if !strings.Contains(summary, tapped.Numbers[1].Text()) || !strings.Contains(summary, "lock:shop:0") {
		t.Errorf("the summary has no %s:\n%s", tapped.Numbers[1].Text(), summary)
	}
	for _, word := range []string{"wait", "refused", "tries", "program"} {
		if text, _ := json.Marshal(tapped); bytes.Contains(text, []byte(word)) {
			t.Errorf("a tap alone tells of %q: %s", word, text)
		}
	}
}

// agrees compares the numbers for a program, from the proxy and from the tap alone, with the program's own log.
func agrees(t *testing.T, name string, want own, n, alone results.LockNumbers) {
	t.Helper()
	if n.Program != name || n.Clients == nil {
		t.Fatalf("%s: %+v", name, n)
	}
	got := n.Clients
	if n.Grants != want.Grants || n.Releases != want.Releases || got.Late != want.Late || n.Expired != want.Late ||
		got.Refused != want.Tries-want.Grants || got.Foreign != 0 ||
		n.Violations["overwritten"]+n.Violations["foreign-release"] != 0 || n.Endless != 0 {
		t.Errorf("%s: %+v %+v; the program: %+v", name, n, got, want)
	}
	if got.Waiting != 0 || got.MostWaiting < want.Most-1 || got.MostWaiting > want.Most+1 {
		t.Errorf("%s: %d waiting, at most %d; the program: at most %d", name, got.Waiting, got.MostWaiting, want.Most)
	}
	const rounded, read = time.Millisecond, 20 * time.Millisecond
	if !within(got.Wait.P50, want.Waits, 0.5, rounded) || !within(got.Wait.P90, want.Waits, 0.9, rounded) ||
		!within(n.Hold.P50, want.Holds, 0.5, rounded) || !within(alone.Hold.P50, want.Holds, 0.5, read) ||
		!within(got.HandOff.P50, want.handOffs(), 0.5, rounded) {
		t.Errorf("%s: %s\n%s", name, n.Text(), alone.Text())
	}
	if alone.Grants != want.Grants || alone.Releases != want.Releases || alone.Expired != want.Late ||
		alone.Clients != nil || alone.Program != "" {
		t.Errorf("%s, alone: %+v; the program: %+v", name, alone, want)
	}
}
