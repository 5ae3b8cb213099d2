package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/internal/program"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// visits takes and gives back locks of many names, rightly, until the test ends.
func visits(t *testing.T, c redis.UniversalClient) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			key := fmt.Sprint("lock:", n%20)
			if c.SetNX(t.Context(), key, n, time.Minute).Val() {
				c.Del(t.Context(), key)
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-over
	})
}

// TestRecorderOfAKilledWatch: during a watch, the history around a violation is saved as a run. The verdict on this
// run has the same cause as the verdict on the whole watch. After kill -9, the files of the recorder still have the
// violation.
func TestRecorderOfAKilledWatch(t *testing.T) {
	t.Parallel()
	s := testbed.Up(t, "single", topologies.Options{}).Sites[0]
	a, c, out := s.Access(), s.Client(topologies.ClientOptions{}), t.TempDir()
	defer func() { _ = c.Close() }()
	var said, errs bytes.Buffer
	watch := exec.Command("verify", "wire", "--addr", "redis://:"+a.Password+"@"+a.Addrs[0], "--locks", "lock:*",
		"--tap-only", "--out", out)
	watch.Stdout, watch.Stderr = &said, &errs
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Process.Kill() }()
	live.Wait(t, "the tap", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "state=online")
	})
	visits(t, c)
	check := func(dir string) string {
		text, _ := exec.Command("verify", "check", dir).CombinedOutput()
		return string(text)
	}
	cause := regexp.MustCompile(`FAIL  exclusion: [\w-]+`)
	cut := filepath.Join(out, "latest")
	c.Set(t.Context(), "lock:stolen", "one", time.Minute)
	c.Set(t.Context(), "lock:stolen", "two", time.Minute)
	live.Wait(t, "a cut", func() bool {
		_, err := os.Stat(cut)
		return err == nil
	})
	judged := check(cut)
	partial, _ := filepath.Glob(filepath.Join(out, "*.partial"))
	if len(partial) != 1 {
		t.Fatalf("%v\n%s", partial, errs.String())
	}
	live.Wait(t, "pieces on disk", func() bool {
		pieces, _ := filepath.Glob(filepath.Join(partial[0], program.RecorderDir, "[0-9]*"))
		return len(pieces) > 1
	})
	_ = watch.Process.Kill()
	_ = watch.Wait()
	left := check(partial[0])
	if want := cause.FindString(judged); want == "" || cause.FindString(left) != want ||
		!strings.Contains(left, "killed") {
		t.Errorf("the cut:\n%s\nwhat is left:\n%s", judged, left)
	}
	if !strings.Contains(errs.String(), "cut out: lock:stolen: overwritten at ") || strings.Contains(judged, "lock:0") {
		t.Errorf("%s\n%s", errs.String(), judged)
	}
}
