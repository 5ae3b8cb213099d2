package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// The load of BenchmarkWatchAlone: a steady alternation of SET and DEL of locks.
const (
	writesRate  = 20_000
	writesKeys  = 2000
	writesEvery = 10 * time.Millisecond
	writesTime  = 5 * time.Second
)

// used returns the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWatchAlone measures the share of one core that watching a replication stream takes, at 20 000 writes to
// locks a second. This includes recording and metrics. Another process makes the writes.
func BenchmarkWatchAlone(b *testing.B) {
	s := testbed.Up(b, "single", topologies.Options{}).Sites[0]
	a, c := s.Access(), s.Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan int)
	go func() {
		ended <- Verify(ctx, Env{Args: []string{"wire", "--addr", "redis://:" + a.Password + "@" + a.Addrs[0],
			"--locks", "lock:*", "--tap-only", "--metrics", ":0",
			"--out", b.TempDir(), "--tui", "off"}, Stdout: io.Discard, Stderr: io.Discard})
	}()
	live.Wait(b, "the tap", func() bool {
		return strings.Contains(c.Info(b.Context(), "replication").Val(), "port=65536,state=online")
	})
	parts := map[bool][]float64{}
	for b.Loop() {
		for _, loaded := range []bool{false, true} {
			parts[loaded] = append(parts[loaded], alone(b, a, loaded))
		}
	}
	b.ReportMetric(100*(median(parts[true])-median(parts[false])), "core-%")
	cancel()
	<-ended
}

// alone returns the share of one core that this process uses. With loaded, redis-cli sends writes to the server;
// without, the same writes go to "cat", which shows the cost of sending them.
func alone(b *testing.B, a topologies.Access, loaded bool) float64 {
	host, port, _ := strings.Cut(a.Addrs[0], ":")
	pipe := exec.CommandContext(b.Context(), "redis-cli", "-h", host, "-p", port, "-a", a.Password, "--pipe")
	if !loaded { // measures the cost of sending
		pipe = exec.CommandContext(b.Context(), "cat")
	}
	in, err := pipe.StdinPipe()
	if err == nil {
		err = pipe.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	ends := []int{0} // of each two writes
	for n := range writesRate * int(writesTime/time.Second) / 2 {
		key := fmt.Sprint("lock:", n%writesKeys)
		fmt.Fprintf(&text, "SET %s %d PX 10000\r\nDEL %s\r\n", key, n, key)
		ends = append(ends, text.Len())
	}
	runtime.GC()
	n, begun, before := 0, time.Now(), used()
	for time.Since(begun) < writesTime {
		<-time.After(writesEvery)
		upto := min(int(time.Since(begun).Seconds()*writesRate/2), len(ends)-1)
		if _, err := in.Write(text.Bytes()[ends[n]:ends[upto]]); err != nil {
			b.Fatal(err)
		}
		n = upto
	}
	part := float64(used()-before) / float64(time.Since(begun))
	_ = in.Close()
	if err := pipe.Wait(); err != nil {
		b.Fatal(err)
	}
	return part
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
