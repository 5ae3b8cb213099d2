package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// fairness shows a bar for each worker: its number of visits.
func fairness(c canvas, s *measure.Snapshot) {
	f := &s.Fairness
	c = c.panel("fairness", shareTitle(f))
	if !fairnessLine(c, s) {
		return
	}
	most := mostVisits(f)
	var values []float64
	for _, w := range f.Workers[:min(len(f.Workers), max(c.w, 0))] {
		values = append(values, float64(w.Visits))
	}
	graph := c.part(0, 1, min(c.w, len(values)), min(c.h-1, 3))
	graph.spark(values, float64(most), func(int) tone { return plain })
}

// shareTitle describes the bars: which workers they stand for, and the number of visits of the highest bar.
func shareTitle(f *results.Fairness) string {
	if n := len(f.Workers); n > 0 && mostVisits(f) > 0 {
		return fmt.Sprintf("w00-w%02d, at most %s", n-1, human.Count(mostVisits(f)))
	}
	return "visits by worker"
}

func mostVisits(f *results.Fairness) (most int64) {
	for _, w := range f.Workers {
		most = max(most, w.Visits)
	}
	return most
}

// fairnessLine draws the first line. It returns false if no visit has counted yet, so that there is nothing else to
// show.
func fairnessLine(c canvas, s *measure.Snapshot) bool {
	f := &s.Fairness
	switch {
	case mostVisits(f) == 0 && s.At < s.From:
		c.put(0, 0, faint, "warm-up: no visit counts yet")
		return false
	case mostVisits(f) == 0:
		c.put(0, 0, faint, "no visit was counted yet")
		return false
	}
	t := plain
	if f.Starving > 0 {
		t = warning
	}
	x := c.put(0, 0, plain, fmt.Sprintf("Jain %.3f  ", f.Jain))
	x = c.put(x, 0, t, fmt.Sprintf("starving %d  ", f.Starving))
	x = c.put(x, 0, plain, fmt.Sprintf("worst w%02d %s", f.Worst.Worker, human.Count(f.Worst.Visits)))
	if wait := ", " + human.Duration(time.Duration(f.Worst.Longest)); !s.Head.Unseen &&
		x+utf8.RuneCountInString(wait) <= c.w {
		c.put(x, 0, plain, wait)
	}
	return true
}

// sharing draws the view of fairness: the Lorenz curve on the left, the workers with the longest waits on the right.
func sharing(c canvas, s *measure.Snapshot, st *state) {
	left := max(c.w*9/20, 40)
	lorenz(c.part(0, 0, left-1, c.h), s)
	longestWaits(c.part(left, 0, c.w-left, c.h), s, st)
}

// lorenz draws the Lorenz curve (M. O. Lorenz, Publ. Am. Stat. Assoc. 70, 1905). The x axis is a share of the workers,
// beginning with those that had the fewest visits. The y axis is the share of the visits that these workers had.
func lorenz(c canvas, s *measure.Snapshot) {
	c = c.panel("fairness", "Lorenz curve")
	if !fairnessLine(c, s) || c.h < 6 {
		return
	}
	visits := make([]int64, 0, len(s.Fairness.Workers))
	for _, w := range s.Fairness.Workers {
		visits = append(visits, w.Visits)
	}
	slices.Sort(visits)
	c.put(0, 1, faint, "share of visits; · if all had as many")
	graph := c.part(6, 2, c.w-6, c.h-5)
	curve := make([]float64, graph.w)
	for x := range curve {
		curve[x] = poorest(visits, (float64(x)+0.5)/float64(graph.w))
		equal := float64(x) / float64(max(graph.w-1, 1))
		graph.put(x, int((1-equal)*float64(graph.h-1)+0.5), faint, "·")
	}
	graph.spark(curve, 1, func(int) tone { return plain })
	for i := range 5 {
		y := i * (graph.h - 1) / 4
		c.put(0, 2+y, faint, fmt.Sprintf("%5d%%", 100-100*y/max(graph.h-1, 1)))
	}
	foot := c.part(6, c.h-3, c.w-6, 3)
	foot.put(0, 0, faint, "0 %")
	foot.put(foot.w/2-2, 0, faint, "50 %")
	foot.right(0, faint, "100 %")
	foot.right(1, faint, "of the workers, the poorest first")
	c.put(0, c.h-1, plain, cut("the poorer half has "+human.Percent(poorest(visits, 0.5))+" of the visits", c.w))
}

// poorest returns which share of the sum the smallest values have; part is the share of the values that count. The
// last of them may count only in part.
func poorest(ascending []int64, part float64) float64 {
	var all, sum float64
	whole := part * float64(len(ascending))
	for i, v := range ascending {
		all += float64(v)
		sum += float64(v) * min(max(whole-float64(i), 0), 1)
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// longestWaits lists the workers in descending order of their longest wait. For a service, where waits are unknown,
// the workers with the fewest visits come first.
func longestWaits(c canvas, s *measure.Snapshot, st *state) {
	workers := slices.Clone(s.Fairness.Workers)
	by := func(a, b results.Worker) int { return cmp.Compare(b.Longest, a.Longest) }
	title := "longest waits"
	if s.Head.Unseen {
		title, by = "fewest visits", func(a, b results.Worker) int { return cmp.Compare(a.Visits, b.Visits) }
	}
	slices.SortStableFunc(workers, by)
	now := map[int]time.Duration{}
	for _, l := range s.Lanes {
		if l.Mode&measure.Waited != 0 {
			now[l.Worker] = l.Since
		}
	}
	rows := max(min(c.h-2, len(workers)), 0)
	st.top = min(st.top, len(workers)-rows)
	c = c.panel(title, fmt.Sprintf("%d to %d of %d", min(st.top+1, len(workers)), st.top+rows, len(workers)))
	c.put(0, 0, faint, "      longest     mean      now  visits")
	for y, w := range workers[st.top : st.top+rows] {
		wait := ""
		if d, waits := now[w.Worker]; waits {
			wait = human.Duration(d)
		}
		t := plain
		if slices.Contains(s.Fairness.StarvingWorkers, w.Worker) {
			t = warning
		}
		x := c.put(0, y+1, t, fmt.Sprintf("w%02d %9s%9s%9s%8s ", w.Worker, human.Duration(time.Duration(w.Longest)),
			human.Duration(time.Duration(w.Mean)), wait, human.Count(w.Visits)))
		c.bar(x, y+1, float64(w.Visits)/float64(max(mostVisits(&s.Fairness), 1)))
	}
}
