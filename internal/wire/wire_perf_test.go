package wire

import (
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// nothing is a sink that keeps nothing.
type nothing struct{}

func (nothing) Sent(*Request)    {}
func (nothing) Request(*Request) {}
func (nothing) Effect(*Effect)   {}
func (nothing) Event(Event)      {}

// beside starts two servers: one has a proxy in front, the other has none.
func beside(b *testing.B) (direct, proxied, password string) {
	top := testbed.Up(b, "single", topologies.Options{})
	node, password := top.Nodes[0], top.Sites[0].Password()
	p := listen(b, &Run{Clock: history.NewOrderedClock(0), Sink: nothing{}},
		Endpoint{Listen: "127.0.0.1:0", Dial: dialler(node.Addr())})
	return node.Addr(), p.Addr(), password
}

// BenchmarkWirePipelined measures commands per second in pipelines of 16, in turns with a server without a proxy.
func BenchmarkWirePipelined(b *testing.B) {
	direct, proxied, password := beside(b)
	var rates, used [2][]float64
	for b.Loop() {
		for i, addr := range []string{direct, proxied} {
			before := processor()
			rates[i] = append(rates[i], pipelined(b, addr, password, "-P", "16", "-c", "16", "-n", "400000"))
			used[i] = append(used[i], float64(processor()-before)/400_000)
		}
	}
	b.ReportMetric(median(rates[0]), "direct/s")
	b.ReportMetric(median(rates[1]), "proxied/s")
	b.ReportMetric(median(used[1])-median(used[0]), "cpu-ns/command")
}

// BenchmarkWireSteady measures the processor time of a proxy for each command. Each of a few clients waits for a reply
// before its next command.
func BenchmarkWireSteady(b *testing.B) {
	_, proxied, password := beside(b)
	var used []float64
	for b.Loop() {
		before := processor()
		pipelined(b, proxied, password, "-P", "1", "-c", "4", "-n", "40000")
		used = append(used, float64(processor()-before)/40_000/1e3)
	}
	b.ReportMetric(median(used), "cpu-us/command")
}

// processor returns the processor time of this process, which has the proxy but not the load.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var perSecond = regexp.MustCompile(`"SET","([0-9.]+)"`)

func pipelined(b *testing.B, addr, password string, more ...string) float64 {
	host, port, _ := net.SplitHostPort(addr)
	args := append([]string{"-h", host, "-p", port, "-a", password, "-t", "set", "--csv"}, more...)
	out, err := exec.CommandContext(b.Context(), "redis-benchmark", args...).Output()
	if err != nil {
		b.Fatal(err)
	}
	found := perSecond.FindStringSubmatch(string(out))
	if found == nil {
		b.Fatal(string(out))
	}
	rate, _ := strconv.ParseFloat(found[1], 64)
	return rate
}

// BenchmarkWireCommand measures what a proxy adds to the median latency of single commands.
func BenchmarkWireCommand(b *testing.B) {
	direct, proxied, password := beside(b)
	clients := [2]*redis.Client{}
	for i, addr := range []string{direct, proxied} {
		clients[i] = redis.NewClient(&redis.Options{Addr: addr, Password: password})
		defer clients[i].Close()
	}
	var took [2][]float64
	for b.Loop() {
		for range 2000 {
			for i, c := range clients {
				start := time.Now()
				if err := c.Set(b.Context(), "k", "v", 0).Err(); err != nil {
					b.Fatal(err)
				}
				took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/1e3)
			}
		}
	}
	b.ReportMetric(median(took[0]), "direct-us")
	b.ReportMetric(median(took[1])-median(took[0]), "added-us")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
