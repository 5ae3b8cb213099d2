package crew

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/results"
)

// loadSample has the CPU time that this process and the machine have used so far.
type loadSample struct {
	at        time.Duration
	own       time.Duration // CPU time of this process
	suite     time.Duration // CPU time of all processes of the suite; 0 = unknown
	machine   ticks
	gc        *metrics.Float64Histogram
	sched     *metrics.Float64Histogram
	poolWaits int64
}

const (
	gcPauses  = "/sched/pauses/total/gc:seconds"
	latencies = "/sched/latencies:seconds"
)

func readLoad(now time.Duration, clients []redis.UniversalClient) loadSample {
	l := loadSample{at: now}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err == nil {
		l.own = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	stat, _ := os.ReadFile("/proc/stat") // an error does not matter: only Linux has this file
	l.machine = parseTicks(string(stat))
	m := []metrics.Sample{{Name: gcPauses}, {Name: latencies}}
	metrics.Read(m)
	l.gc, l.sched = histogram(m[0]), histogram(m[1])
	for _, c := range clients {
		l.poolWaits += int64(c.PoolStats().WaitCount)
	}
	return l
}

// readAll takes a sample that includes the CPU time of the suite's other processes and the servers. This takes one or
// two milliseconds.
func readAll(now time.Duration, clients []redis.UniversalClient) loadSample {
	l := readLoad(now, clients)
	l.suite = family("/proc", os.Getpid())
	return l
}

// family returns the CPU time of the whole suite. The suite consists of the process pid, its ancestors that run the
// same program, and all descendants of these, including those that have ended. It returns 0 if /proc differs from
// proc(5).
func family(proc string, pid int) (sum time.Duration) {
	type process struct {
		parent int
		used   float64
		ours   bool
	}
	all := map[int]*process{}
	entries, _ := os.ReadDir(proc) // an error does not matter: only Linux has this directory
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(proc, e.Name(), "stat")) // the process may have ended
		// the name of the process, in parentheses, may contain spaces
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		const parent, utime, cstime = 1, 11, 14
		if len(fields) <= cstime {
			continue
		}
		p := &process{}
		p.parent, _ = strconv.Atoi(fields[parent])
		for _, f := range fields[utime : cstime+1] {
			n, _ := strconv.ParseFloat(f, 64)
			p.used += n
		}
		all[id] = p
	}
	program := func(id int) string { exe, _ := os.Readlink(filepath.Join(proc, strconv.Itoa(id), "exe")); return exe }
	for p := all[pid]; p != nil && p.parent > 0 && program(p.parent) == program(pid); p = all[pid] {
		pid = p.parent
	}
	if all[pid] == nil {
		return 0
	}
	all[pid].ours = true
	for more := true; more; {
		more = false
		for _, p := range all {
			if parent := all[p.parent]; !p.ours && parent != nil && parent.ours {
				p.ours, more = true, true
			}
		}
	}
	for _, p := range all {
		if p.ours {
			sum += time.Duration(p.used * float64(tick))
		}
	}
	return sum
}

// histogram reads a metric of the Go runtime. It is empty if this version of Go lacks the metric.
func histogram(s metrics.Sample) *metrics.Float64Histogram {
	if s.Value.Kind() != metrics.KindFloat64Histogram {
		return &metrics.Float64Histogram{}
	}
	return s.Value.Float64Histogram()
}

// ticks has the machine's CPU time in units of tick; all fields are 0 if it is unknown.
type ticks struct {
	busy, all float64
	stolen    float64 // time taken by the hypervisor
	programs  float64 // CPU time of programs, without interrupts
}

// tick is the unit of CPU time in /proc on all Linux machines.
const tick = 10 * time.Millisecond

// parseTicks parses the first line of /proc/stat: see proc_stat(5).
func parseTicks(text string) (t ticks) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const system, idle, iowait, steal, guest = 3, 4, 5, 8, 9
	for i := 1; i < min(len(fields), guest); i++ {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return ticks{}
		}
		t.all += n
		if i != idle && i != iowait {
			t.busy += n
		}
		if i <= system {
			t.programs += n
		}
		if i == steal {
			t.stolen = n
		}
	}
	return t
}

func (l loadSample) since(before loadSample) results.Usage {
	r := results.Usage{MachineCPU: -1, OthersCPU: -1, StolenCPU: -1, PoolWaits: l.poolWaits - before.poolWaits}
	if wall := l.at - before.at; wall > 0 {
		r.OwnCPU = float64(l.own-before.own) / float64(wall) / float64(runtime.GOMAXPROCS(0))
	}
	if all := l.machine.all - before.machine.all; all > 0 {
		r.MachineCPU = (l.machine.busy - before.machine.busy) / all
		r.StolenCPU = (l.machine.stolen - before.machine.stolen) / all
		if before.suite > 0 {
			used := l.machine.programs - before.machine.programs - float64(l.suite-before.suite)/float64(tick)
			r.OthersCPU = max(used, 0) / all
		}
	}
	r.GCPauseMax = int64(upper(l.gc, before.gc, 1))
	r.SchedulingP99 = int64(upper(l.sched, before.sched, 0.99))
	return r
}

// whyStill returns what kept the process from running for the given time; empty if unknown. A cause must have taken at
// least half of that time.
func (l loadSample) whyStill(before loadSample, gap time.Duration) string {
	var why []string
	if stolen := time.Duration((l.machine.stolen - before.machine.stolen) * float64(tick)); stolen >= gap/2 {
		why = append(why, fmt.Sprintf("%.3g s of CPU time stolen by the hypervisor", stolen.Seconds()))
	}
	if waited := upper(l.sched, before.sched, 1); waited >= gap/2 {
		why = append(why, fmt.Sprintf("runnable goroutines waited up to %.3g s for a CPU", waited.Seconds()))
	}
	if len(why) == 0 {
		return ""
	}
	return fmt.Sprintf("in the last %.3g s: %s", (l.at - before.at).Seconds(), strings.Join(why, ", "))
}

// upper returns an upper bound for the quantile q of the values between two samples: the upper edge of its bucket.
func upper(after, before *metrics.Float64Histogram, q float64) time.Duration {
	var total, sum uint64
	count := func(i int) uint64 {
		if before == nil || i >= len(before.Counts) {
			return after.Counts[i]
		}
		return after.Counts[i] - before.Counts[i]
	}
	if after == nil {
		return 0
	}
	for i := range after.Counts {
		total += count(i)
	}
	for i := range after.Counts {
		if sum += count(i); total > 0 && float64(sum) >= q*float64(total) {
			edge := after.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = after.Buckets[i]
			}
			return time.Duration(edge * float64(time.Second))
		}
	}
	return 0
}

// Probe measures the CPU usage of this process and the machine between two calls of Look. It is not safe for
// concurrent use.
type Probe struct{ last loadSample }

// Look returns the usage since the last call. The first call returns false.
func (p *Probe) Look(now time.Duration) (results.Usage, bool) {
	before := p.last
	p.last = readAll(now, nil)
	return p.last.since(before), before.machine.all > 0 || before.own > 0
}
