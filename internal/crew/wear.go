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
		if looked := w.At - began; looked >= (to-from)/6 { // of less, the time that is counted in ticks says nothing
			w.CPU = float64(home.spent()-spent) / float64(looked)
		}
		u, now := home.used(), home.places()
		w.Goroutines, w.Files, w.Memory = u.threads, u.files, u.memory
		w.Most, before = grown(before, now), now
		all = append(all, w)
	}
	return all
}

// use is what the processes that have the lock have, and the CPU time that they have spent so far.
type use struct {
	threads, files, memory int64
	cpu                    time.Duration
}

// process tells what the process of a lock has and has used.
type process interface {
	spent() time.Duration     // CPU time so far
	used() use                // without cpu, if that is not known
	places() map[string]int64 // how many goroutines are at each place of its code; nil if it has no goroutines
}

// program is the process of a lock that is a program of its own, with all that is in its group.
type program int

func (p program) spent() time.Duration   { return p.used().cpu }
func (p program) used() use              { return usedBy("/proc", int(p)) }
func (program) places() map[string]int64 { return nil }

// own is this process.
type own struct{}

func (own) spent() time.Duration { return readLoad(0, nil).own }

func (own) used() (u use) {
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
		u.threads, u.memory, u.files = u.threads+number(threads), u.memory+number(resident)*int64(os.Getpagesize()),
			u.files+int64(len(open))
	}
	return u
}

// places are the functions outside of the runtime, the innermost first.
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

// mostNames bounds the functions of a place, mostPlaces the places that are told.
const (
	mostNames  = 4
	mostPlaces = 3
)

// grown are the places at which goroutines have become more.
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
