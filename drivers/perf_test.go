package drivers_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"

	"hammerlock/internal/driver"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// BenchmarkDrivers compares turns with the driver and turns without it. In each turn, these workers visit for this
// time, each with its own key.
const (
	perfWorkers = 16
	perfTurn    = time.Second
)

// direct are commands that do without the pipe what a driver does with it; in Go this process does.
var direct = map[string]func(t *testing.B) string{
	"go-redislock": nil,
	"redis-py":     func(b *testing.B) string { return live.Python(b, "redis.asyncio") + " python/direct.py %s" },
	"redis-py-asyncio": func(b *testing.B) string {
		return live.Python(b, "redis.asyncio") + " python/direct.py %s asyncio"
	},
	"redlock": func(*testing.B) string { return "node node/direct.js redlock %s" },
}

// BenchmarkDrivers measures how many visits a library makes with the driver and without it, in turns. It also
// measures how long a ping takes.
func BenchmarkDrivers(b *testing.B) {
	top := perfServer(b)
	site := top.Sites[0]
	host, port, _ := net.SplitHostPort(site.Addrs()[0])
	for _, name := range []string{"go-redislock", "redis-py", "redis-py-asyncio", "redlock"} {
		b.Run(name, func(b *testing.B) {
			p := perfDriver(b, top, name)
			defer p.Close()
			var with, without, cpu, cpuOfDriver, cpuWithout []float64
			for b.Loop() {
				own, its := used(b, os.Getpid()), used(b, p.PID())
				with = append(with, visits(b, p))
				n := float64(counted.Load())
				cpu = append(cpu, (used(b, os.Getpid())-own)/n)
				cpuOfDriver = append(cpuOfDriver, (used(b, p.PID())-its)/n)
				if direct[name] == nil {
					own = used(b, os.Getpid())
					without = append(without, bare(b, site))
					cpuWithout = append(cpuWithout, (used(b, os.Getpid())-own)/float64(counted.Load()))
					continue
				}
				args := fmt.Sprintf("%s %s %s %g %d", host, port, site.Password(), perfTurn.Seconds(), perfWorkers)
				without = append(without, program(b, fmt.Sprintf(direct[name](b), args)))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(with), "driver/s")
			b.ReportMetric(median(without), "direct/s")
			b.ReportMetric(median(with)/median(without), "ratio")
			apart, inARow := pinged(p)
			b.ReportMetric(apart, "ping-apart-p50-µs")
			b.ReportMetric(inARow, "ping-p50-µs")
			b.ReportMetric(median(cpu), "suite-cpu-µs/visit")
			b.ReportMetric(median(cpuOfDriver), "driver-cpu-µs/visit")
			if len(cpuWithout) > 0 {
				b.ReportMetric(median(cpuWithout), "direct-cpu-µs/visit")
			}
		})
	}
}

// used is the CPU time that a process has used, in microseconds: it says what the pipe costs on a busy machine, too.
func used(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if err != nil || len(fields) < 13 {
		b.Fatalf("%v: %s", err, text)
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) * 1e6 / 100 // Linux counts hundredths of a second
}

func perfServer(b *testing.B) *topologies.Topology {
	return testbed.Up(b, "single", topologies.Options{})
}

// perfDriver starts a driver as a run does.
func perfDriver(b *testing.B, top *topologies.Topology, name string) *driver.Process {
	command := "node node/driver.js redlock"
	switch name {
	case "go-redislock":
		command = b.TempDir() + "/driver"
		build := exec.Command("go", "build", "-o", command, ".")
		build.Dir = "go"
		if text, err := build.CombinedOutput(); err != nil {
			b.Skipf("%v\n%s", err, text)
		}
	case "redis-py":
		command = live.Python(b, "redis.asyncio") + " python/redis_py.py"
	case "redis-py-asyncio":
		command = live.Python(b, "redis.asyncio") + " python/redis_py.py asyncio"
	}
	s, err := driver.Greet(b.Context(), strings.Fields(command), driver.Environment(os.Getenv, nil))
	if err != nil {
		b.Skip(err)
	}
	p, err := driver.Start(b.Context(), s,
		driver.Options{Topology: "single", Sites: []topologies.Access{top.Sites[0].Access()}, Lease: 5 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// visits lets workers acquire and release behind the pipe, and returns how often they did so a second.
func visits(b *testing.B, p *driver.Process) float64 {
	return together(b, func(ctx context.Context, i int) error {
		l := p.Worker(nil)
		for key := fmt.Sprint("driver", i); ctx.Err() == nil; {
			lease, err := l.Acquire(b.Context(), key, 5*time.Second)
			if err == nil {
				err = l.Release(b.Context(), lease)
			}
			if err != nil {
				return err
			}
			counted.Add(1)
		}
		return l.Close()
	})
}

// bare is the same with the library in this process.
func bare(b *testing.B, site *topologies.Site) float64 {
	c := site.Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	library := redislock.New(c)
	return together(b, func(ctx context.Context, i int) error {
		for key := fmt.Sprint("direct", i); ctx.Err() == nil; {
			held, err := library.Obtain(b.Context(), key, 5*time.Second, nil)
			if err == nil {
				err = held.Release(b.Context())
			}
			if err != nil {
				return err
			}
			counted.Add(1)
		}
		return nil
	})
}

// counted are the visits of a turn.
var counted atomic.Int64

func together(b *testing.B, work func(ctx context.Context, i int) error) float64 {
	counted.Store(0)
	ctx, cancel := context.WithTimeout(b.Context(), perfTurn)
	defer cancel()
	var all sync.WaitGroup
	for i := range perfWorkers {
		all.Go(func() {
			if err := work(ctx, i); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	return float64(counted.Load()) / perfTurn.Seconds()
}

func program(b *testing.B, command string) float64 {
	args := strings.Fields(command)
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		b.Fatalf("%s: %v", command, err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		b.Fatal(err)
	}
	return float64(n) / perfTurn.Seconds()
}

// pinged returns median times of pings to an idle driver, in µs. Pings that are apart have pauses between them, as
// in a run; the machine has to wake up for each. Pings in a row have no pauses.
func pinged(p *driver.Process) (apart, inARow float64) {
	done := make(chan struct{})
	time.AfterFunc(5*time.Second, func() { close(done) })
	var all []float64
	p.Watch(done, func(g driver.Ping) { all = append(all, float64(g.Took)/1e3) })
	apart, all = median(all), nil
	for range 10_000 {
		if g, ok := p.Ping(nil); ok {
			all = append(all, float64(g.Took)/1e3)
		}
	}
	return apart, median(all)
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
