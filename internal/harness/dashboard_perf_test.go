package harness

import (
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"hammerlock/internal/dashboard"
	"hammerlock/results"
)

// watchedSlice is long enough for a dashboard to draw some frames.
const watchedSlice = 2 * time.Second

// work lets the suite run for the time slice, with a dashboard if the argument watched is true. It returns the visits
// per second, the p99 of their response times, and the CPU time of this process for each visit.
func work(b *testing.B, a *arena, watched bool) (visits float64, p99, cpu time.Duration) {
	b.Helper()
	a.job.Watched = watched
	a.tell = func(Event) {}
	if watched {
		screen := tcell.NewSimulationScreen("UTF-8")
		if err := screen.Init(); err != nil {
			b.Fatal(err)
		}
		screen.SetSize(200, 60)
		d := dashboard.Open(screen, dashboard.Options{Color: true})
		defer func() {
			if err := d.Close(); err != nil {
				b.Error(err)
			}
		}()
		a.tell = func(e Event) { d.Publish(e.Snapshot) }
	}
	x, end := a.observe(b)
	start, used := time.Now(), ownCPU(b)
	due, err := a.deployment.Crew.Run(b.Context(), b.Context())
	took := time.Since(start)
	used = ownCPU(b) - used
	if end(); err != nil {
		b.Fatal(err)
	}
	var run results.Run
	x.meter.Summarize(&run, results.Usage{})
	if ns := run.Latency.Response.P99; ns != nil {
		p99 = time.Duration(*ns)
	}
	return float64(due.Begun) / took.Seconds(), p99, used / time.Duration(max(due.Begun, 1))
}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDashboard compares runs with and without a dashboard, in the order off, on, on, off. It reports the
// ratios. To show the noise of the machine, it also reports the ratios of two halves that both lack a dashboard.
func BenchmarkDashboard(b *testing.B) {
	for _, load := range []struct {
		name string
		rate float64
	}{{"closed", 0}, {"open", 1000}} {
		b.Run(load.name, func(b *testing.B) {
			a := perfStage(b, 16, false, func(p *Plan) { p.Workload.Rate, p.Duration = load.rate, watchedSlice })
			var through, tail, own, noiseThrough, noiseTail []float64
			for b.Loop() {
				v1, t1, c1 := work(b, a, false)
				v2, t2, c2 := work(b, a, true)
				v3, t3, c3 := work(b, a, true)
				v4, t4, c4 := work(b, a, false)
				through = append(through, (v2+v3)/(v1+v4))
				tail = append(tail, float64(t2+t3)/float64(t1+t4))
				own = append(own, float64(c2+c3)/float64(c1+c4))
				noiseThrough = append(noiseThrough, max(v1/v4, v4/v1))
				noiseTail = append(noiseTail, math.Max(float64(t1)/float64(t4), float64(t4)/float64(t1)))
			}
			b.ReportMetric(100*median(through), "%-visits")
			b.ReportMetric(100*median(tail), "%-p99")
			b.ReportMetric(100*median(own), "%-cpu")
			b.ReportMetric(100*median(noiseThrough), "%-noise-visits")
			b.ReportMetric(100*median(noiseTail), "%-noise-p99")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
