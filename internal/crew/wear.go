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

// wear looks at what the process of the lock has at the end of each rest. Its CPU is that of the last third of a rest.
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
	shape := &t.orders.Shape
	for round := range shape.Rounds {
		from, to := shape.Resting(shape.End / time.Duration(shape.Rounds) * time.Duration(round))
		if !until(to - (to-from)/3) {
			break
		}
		began, spent := t.crew.Clock.Now(), t.spent()
		if !until(to - (to-from)/20) {
			break
		}
		w := history.Wear{Process: int16(t.orders.Process), Workers: shape.Workers, At: t.crew.Clock.Now()}
		if looked := w.At - began; looked >= (to-from)/6 { // of less, the time that is counted in ticks says nothing
			w.CPU = float64(t.spent()-spent) / float64(looked)
		}
		u := t.used()
		w.Goroutines, w.Files, w.Memory = u.threads, u.files, u.memory
		if t.driver == nil {
			now := places()
			w.Most, before = grown(before, now), now
		}
		all = append(all, w)
	}
	return all
}

// use is what the processes that have the lock have, and the CPU time that they have spent so far.
type use struct {
	threads, files, memory int64
	cpu                    time.Duration
}

// spent is the CPU time of this process so far, or of the program of the lock in its place.
func (t *team) spent() time.Duration {
	if t.driver != nil {
		return usedBy("/proc", t.driver.PID()).cpu
	}
	return readLoad(0, nil).own
}

// used is what this process has, or the program of the lock in its place, with all that is in its group.
func (t *team) used() (u use) {
	if t.driver != nil {
		return usedBy("/proc", t.driver.PID())
	}
	var m runtime.MemStats
	runtime.GC() // what pools keep from one collection to the next goes with the second
	runtime.GC()
	runtime.ReadMemStats(&m)
	u.threads, u.memory = int64(runtime.NumGoroutine()), int64(m.HeapAlloc)
	open, _ := os.ReadDir("/proc/self/fd") // not every system has it
	u.files = int64(len(open))
	return u
}

// usedBy is what a group of processes has, as proc(5) tells.
func usedBy(proc string, group int) (u use) {
	all, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range all {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // it may have ended
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		const its, utime, stime, threads, resident = 2, 11, 12, 17, 21
		if len(fields) <= resident || fields[its] != strconv.Itoa(group) {
			continue
		}
		number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
		open, _ := os.ReadDir(filepath.Join(dir, "fd"))
		u.cpu += time.Duration(number(utime)+number(stime)) * tick
		u.threads, u.memory, u.files = u.threads+number(threads), u.memory+number(resident)*int64(os.Getpagesize()), u.files+int64(len(open))
	}
	return u
}

// places is how many goroutines are at each place of the code: the functions outside of the runtime, the innermost first.
func places() map[string]int64 {
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

// mostNames bounds the functions of a place, mostPlaces the places that are told.
const (
	mostNames  = 4
	mostPlaces = 3
)

// grown are the places at which goroutines have become more.
func grown(before, now map[string]int64) (most []string) {
	more := func(place string) int64 { return now[place] - before[place] }
	names := slices.SortedFunc(maps.Keys(now), func(a, b string) int { return cmp.Or(cmp.Compare(more(b), more(a)), strings.Compare(a, b)) })
	for _, name := range names[:min(len(names), mostPlaces)] {
		if before != nil && more(name) > 0 {
			most = append(most, fmt.Sprintf("%d more in %s", more(name), name))
		}
	}
	return most
}
