package crew

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
)

// wear measures the resources of the lock's process (memory, goroutines, files, CPU) at the end of each pause between
// rounds of load. It measures CPU time in the last third of the pause.
func (t *team) wear(done <-chan struct{}) (all []history.Wear) {
	var before map[string]int64
	until := func(at time.Duration) bool {
		select {
		case <-time.After(at - t.crew.Clock.Now()):
			return true
		case <-done:
			return false
		}
	}
	shape, home := &t.orders.Shape, t.home()
	for round := range shape.Rounds {
		from, to := shape.Resting(shape.End / time.Duration(shape.Rounds) * time.Duration(round))
		if !until(to - (to-from)/3) {
			break
		}
		began, spent := t.crew.Clock.Now(), home.spent()
		if !until(to - (to-from)/20) {
			break
		}
		w := history.Wear{Process: int16(t.orders.Process), Workers: shape.Workers, At: t.crew.Clock.Now()}
		// CPU time is counted in ticks, so a shorter time would be too inexact
		if looked := w.At - began; looked >= (to-from)/6 {
			w.CPU = float64(home.spent()-spent) / float64(looked)
		}
		u, now := home.used(), home.places()
		w.Goroutines, w.Files, w.Memory = u.threads, u.files, u.memory
		w.Most, before = grown(before, now), now
		all = append(all, w)
	}
	return all
}

// use has the resources that the lock's processes use at a given time.
type use struct {
	threads, files, memory int64
	cpu                    time.Duration
}

// process is the place where a lock runs and its resources are measured.
type process interface {
	spent() time.Duration     // CPU time so far
	used() use                // resources in use; cpu may be missing
	places() map[string]int64 // number of goroutines at each place in the code; nil if it is not a Go process
}

// program is the process group of a lock's program.
type program int

func (p program) spent() time.Duration   { return p.used().cpu }
func (p program) used() use              { return usedBy("/proc", int(p)) }
func (program) places() map[string]int64 { return nil }

// own is this process, for a lock that runs in it.
type own struct{}

func (own) spent() time.Duration { return readLoad(0, nil).own }

func (own) used() (u use) {
	var m runtime.MemStats
	runtime.GC() // twice, because a sync.Pool keeps its values for one collection
	runtime.GC()
	runtime.ReadMemStats(&m)
	u.threads, u.memory = int64(runtime.NumGoroutine()), int64(m.HeapAlloc)
	open, _ := os.ReadDir("/proc/self/fd") // an error does not matter: only Linux has this directory
	u.files = int64(len(open))
	return u
}

// usedBy returns the resources of a process group: see proc(5).
func usedBy(proc string, group int) (u use) {
	all, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range all {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // the process may have ended
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		const its, utime, stime, threads, resident = 2, 11, 12, 17, 21
		if len(fields) <= resident || fields[its] != strconv.Itoa(group) {
			continue
		}
		number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
		open, _ := os.ReadDir(filepath.Join(dir, "fd"))
		u.cpu += time.Duration(number(utime)+number(stime)) * tick
		u.threads, u.memory, u.files = u.threads+number(threads), u.memory+number(resident)*int64(os.Getpagesize()),
			u.files+int64(len(open))
	}
	return u
}

// places maps each call stack, without runtime functions and with the innermost function first, to its number of
// goroutines.
func (own) places() map[string]int64 {
	all := make([]runtime.StackRecord, 2*runtime.NumGoroutine()+100)
	n, ok := runtime.GoroutineProfile(all)
	if !ok {
		return nil
	}
	at := map[string]int64{}
	for i := range n {
		frames := runtime.CallersFrames(all[i].Stack())
		var names []string
		for more := true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); !strings.HasPrefix(f.Function, "runtime.") {
				names = append(names, f.Function)
			}
		}
		at[strings.Join(names[:min(len(names), mostNames)], ", called by ")]++
	}
	return at
}

// mostNames is the largest number of functions in the name of a place. mostPlaces is the largest number of places in a
// report.
const (
	mostNames  = 4
	mostPlaces = 3
)

// grown describes the places whose number of goroutines has grown most, at most mostPlaces of them.
func grown(before, now map[string]int64) (most []string) {
	more := func(place string) int64 { return now[place] - before[place] }
	names := slices.SortedFunc(maps.Keys(now), func(a, b string) int {
		return cmp.Or(cmp.Compare(more(b), more(a)), strings.Compare(a, b))
	})
	for _, name := range names[:min(len(names), mostPlaces)] {
		if before != nil && more(name) > 0 {
			most = append(most, fmt.Sprintf("%d more in %s", more(name), name))
		}
	}
	return most
}
