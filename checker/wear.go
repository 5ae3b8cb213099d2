package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// The growth of resources that is allowed from one pause of the load to the next. The correct locks of the catalogue
// need far less, even with pools and with threads that are made on demand.
const (
	callsForOne  = 20       // calls that explain one more goroutine, thread, file or connection
	spareOnes    = 20       // this many more are always allowed, plus one for every four workers
	bytesForCall = 64       // bytes of the heap that one call explains
	spareHeap    = 1 << 18  // growth of the heap that is always allowed, in bytes
	spareProgram = 16 << 20 // growth of a program's memory that is not shown, in bytes
	spareCPU     = 0.15     // growth of an idle process's CPU time, as a share of one CPU
	fewCalls     = 100      // fewer calls prove nothing
)

const goroutines = "goroutines"

// worn is a kind of resource.
type worn struct {
	name string
	of   func(*history.Wear) float64
	most func(calls, workers float64) float64 // largest growth that is explained
	text func(float64) string
}

// kinds lists the resources. The memory of a program is shown and not judged: with a garbage collector, the memory that
// a program has from the system grows for a long time.
func kinds(program bool) []worn {
	ones := func(calls, workers float64) float64 { return max(calls/callsForOne, spareOnes+workers/4) }
	things := goroutines
	if program {
		things = "threads"
	}
	count := func(x float64) string { return human.Count(int64(x)) }
	list := []worn{
		{things, func(w *history.Wear) float64 { return float64(w.Goroutines) }, ones, count},
		{"open files and connections", func(w *history.Wear) float64 { return float64(w.Files) }, ones, count},
		{"of a CPU in use", func(w *history.Wear) float64 { return w.CPU },
			func(float64, float64) float64 { return spareCPU }, human.Percent},
	}
	if !program {
		list = append(list, worn{"KiB of memory", func(w *history.Wear) float64 { return float64(w.Memory) / 1024 },
			func(calls, _ float64) float64 { return max(calls*bytesForCall, spareHeap) / 1024 }, count})
	}
	return list
}

// callCounts has the numbers of calls of a process up to a moment.
type callCounts struct{ taken, refused, lost int64 }

func (t callCounts) all() int64 { return t.taken + t.refused + t.lost }

// done counts, up to a moment, the tries of a process, its lost holds and its failed renewals.
func (c *Case) done(process int16, until time.Duration) (t callCounts) {
	for i := range c.Ops {
		op := &c.Ops[i]
		switch {
		case op.Process != process || op.Return > until:
		case op.Kind == history.Lose || op.Kind == history.Extend && op.Outcome != history.OK:
			t.lost++
		case op.Kind == history.Acquire && op.Outcome == history.OK:
			t.taken++
		case op.Kind == history.Acquire:
			t.refused++
		}
	}
	return t
}

// weighWear judges whether the processes of the lock leak resources. A resource leaks if it grows in every interval
// between two samples, and there are at least two intervals. A resource that is made once and kept is no leak.
func weighWear(c *Case) Verdict {
	v := Verdict{Checker: history.Client, Summary: "what the lock's processes keep is not known"}
	m := c.Measured
	var total callCounts
	var program int64 // largest growth of the memory of a program
	rests := 0
	for _, samples := range byProcess(m.Wear) {
		done := make([]callCounts, len(samples))
		for i := range samples {
			done[i] = c.done(samples[i].Process, samples[i].At)
		}
		last := done[len(done)-1]
		total = callCounts{total.taken + last.taken, total.refused + last.refused, total.lost + last.lost}
		if len(samples) < 3 || last.all() < fewCalls {
			continue
		}
		rests = max(rests, len(samples))
		program = max(program, samples[len(samples)-1].Memory-samples[0].Memory)
		for _, k := range kinds(m.Driver != nil) {
			if story := k.story(samples, done); story != nil {
				v.Status, v.Cause = Fail, history.ClientLeak
				v.Violations++
				v.Story = append(v.Story, story...)
			}
		}
	}
	v.Exposed = total.all()
	done := fmt.Sprintf("%d taken, %d refused and %d lost or not renewed", total.taken, total.refused, total.lost)
	switch {
	case v.Status == Fail:
		v.Causes, v.Summary = map[string]int64{v.Cause: v.Violations}, fmt.Sprintf("%s: %s", v.Cause, v.Story[0])
	case rests > 0:
		v.Status = Pass
		v.Summary = fmt.Sprintf("nothing grows from one to the next of %d rests, with %s", rests, done)
		if m.Driver != nil && program > spareProgram {
			v.Summary += fmt.Sprintf("; the program's memory grew by %s KiB, which is not judged",
				human.Count(program/1024))
		}
	case total.all() > 0:
		v.Summary = "too few calls or rests to tell what is kept of each: " + done
	}
	return v
}

// byProcess divides the samples by process.
func byProcess(all []history.Wear) (list [][]history.Wear) {
	for _, w := range all {
		at := slices.IndexFunc(list, func(s []history.Wear) bool { return s[0].Process == w.Process })
		if at < 0 {
			at, list = len(list), append(list, nil)
		}
		list[at] = append(list[at], w)
	}
	return list
}

// story describes a resource that grew in every interval by more than is explained; nil if it did not.
func (k *worn) story(samples []history.Wear, done []callCounts) []string {
	text := fmt.Sprintf("process %d has %s %s in its first rest", samples[0].Process, k.text(k.of(&samples[0])), k.name)
	var most []string
	for i := 1; i < len(samples); i++ {
		more, calls := k.of(&samples[i])-k.of(&samples[i-1]), done[i].all()-done[i-1].all()
		if more < k.most(float64(calls), float64(samples[i].Workers)) {
			return nil
		}
		text += fmt.Sprintf(", %s after %s more", k.text(k.of(&samples[i])), human.Quantity(calls, "call"))
		most = samples[i].Most
	}
	if k.name != goroutines {
		most = nil
	}
	return append([]string{text}, most...)
}
