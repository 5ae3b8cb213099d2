package explore

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestAloneSchedulesASecond measures how fast correct locks are explored, and fails if that is certainly too slow.
func TestAloneSchedulesASecond(t *testing.T) {
	for _, name := range []string{"lease", "watchdog", "redlock"} {
		spec := find(t, name)
		o := suited(spec, 2)
		o.Budget = 500 * time.Millisecond
		begun := used()
		r := run(t, spec, o)
		speed := float64(r.Schedules()) / (used() - begun).Seconds()
		t.Logf("%s: %.0f schedules per second of processor time", name, speed)
		if speed < 20 {
			t.Errorf("%s: %.0f schedules a second", name, speed)
		}
	}
}

// BenchmarkExplore measures the schedules of correct locks that a process runs in a second, by the number of cores.
func BenchmarkExplore(b *testing.B) {
	for _, name := range []string{"lease", "redlock"} {
		for _, jobs := range slices.Compact([]int{1, runtime.NumCPU()}) {
			b.Run(fmt.Sprintf("%s:cores=%d", name, jobs), func(b *testing.B) {
				o := Briefly(find(b, name))
				o.Deviations, o.Jobs, o.Budget = 2, jobs, 5*time.Second
				schedules, took := 0, time.Duration(0)
				for b.Loop() {
					r, err := InProcess(b.Context(), Orders{Lock: name, Options: o})
					if err != nil {
						b.Fatal(err)
					}
					schedules, took = schedules+r.Schedules(), took+r.Took
				}
				b.ReportMetric(float64(schedules)/took.Seconds(), "schedules/s")
			})
		}
	}
}
