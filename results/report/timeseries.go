package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/results"
)

// seriesMost limits the number of points in a chart over time. In longer runs a point stands for several seconds.
const seriesMost = 600

// heatRows is the number of rows of a heat map for each factor of ten in latency.
const heatRows = 8

// series has the charts of a run's latencies over time. Times are in seconds since the start of the run, and
// latencies in nanoseconds. Null = no value in this second.
type series struct {
	Step  float64             `json:"step"`
	At    []float64           `json:"at"`
	Rate  []float64           `json:"rate"` // counted visits per second
	Lines map[string]*line    `json:"lines"`
	Heat  map[string]*heatMap `json:"heat"`
}

// line has the percentiles of one kind of latency, for each second. Spectrum has them for the whole run.
type line struct {
	P50      []*int64     `json:"p50"`
	P99      []*int64     `json:"p99"`
	Max      []*int64     `json:"max"`
	Count    int64        `json:"count"`
	Spectrum [][2]float64 `json:"spectrum"` // pairs of 1/(1-q), for the quantile q, and the latency
}

// heatMap counts latencies by second and size. Row r begins at the latency 10^((First+r)/heatRows) ns.
type heatMap struct {
	First int          `json:"first"`
	Rows  int          `json:"rows"`
	Per   int          `json:"per"` // number of rows for each factor of ten
	Cells [][3]float64 `json:"cells"`
}

// second is the histogram of one second of the latency log.
type second struct {
	*hdrhistogram.Histogram
	from time.Duration
}

// readSeries reads the latency log of a saved run; nil = the run has none. If the log is damaged, it also returns the
// seconds before the damage.
func readSeries(dir string, run *results.Run) (*series, error) {
	tags := map[string][]second{}
	err := results.ReadLatencies(dir, func(h *hdrhistogram.Histogram) {
		// The start time of the log is in whole seconds.
		from := time.Duration(h.StartTimeMs())*time.Millisecond - time.Duration(run.Started.Unix())*time.Second
		tags[h.Tag()] = append(tags[h.Tag()], second{h, from.Round(100 * time.Millisecond)})
	})
	return newSeries(tags, time.Duration(run.Warmup+run.Measured)), err
}

// newSeries makes the charts. It leaves out the last second if it is incomplete, because that would look like a
// drop.
func newSeries(tags map[string][]second, end time.Duration) *series {
	if len(tags) == 0 {
		return nil
	}
	first, last := time.Duration(math.MaxInt64), time.Duration(0)
	for _, s := range slices.Concat(slices.Collect(maps.Values(tags))...) {
		first, last = min(first, s.from), max(last, s.from)
	}
	step := time.Second * ((last-first)/time.Second/seriesMost + 1)
	n := int((last-first)/step) + 1
	if n > 1 && end > 0 && first+time.Duration(n)*step > end+step/20 {
		n--
	}
	s := &series{Step: step.Seconds(), Lines: map[string]*line{}, Heat: map[string]*heatMap{}, Rate: make([]float64, n)}
	for i := range n {
		s.At = append(s.At, (first + time.Duration(i)*step).Seconds())
	}
	for tag, seconds := range tags {
		merged := make([]*hdrhistogram.Histogram, n)
		all := empty(seconds[0])
		for _, h := range seconds {
			all.Merge(h.Histogram)
			i := int((h.from - first) / step)
			if i >= n {
				continue
			}
			if merged[i] == nil {
				merged[i] = empty(h)
			}
			merged[i].Merge(h.Histogram)
		}
		s.Lines[tag], s.Heat[tag] = newLine(merged, all), newHeat(merged)
		if tag == "response" {
			for i, h := range merged {
				if h != nil {
					s.Rate[i] = float64(h.TotalCount()) / step.Seconds()
				}
			}
		}
	}
	return s
}

// empty returns an empty histogram with the same settings as h.
func empty(h second) *hdrhistogram.Histogram {
	return hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
}

func newLine(seconds []*hdrhistogram.Histogram, all *hdrhistogram.Histogram) *line {
	l := &line{Count: all.TotalCount(), Spectrum: spectrum(all)}
	for _, h := range seconds {
		var p [3]*int64
		if h != nil && h.TotalCount() > 0 {
			for i, q := range []float64{0.5, 0.99} {
				if results.Supports(q, h.TotalCount()) {
					v := h.ValueAtQuantile(100 * q)
					p[i] = &v
				}
			}
			v := h.Max()
			p[2] = &v
		}
		l.P50, l.P99, l.Max = append(l.P50, p[0]), append(l.P99, p[1]), append(l.Max, p[2])
	}
	return l
}

// spectrum returns the latency for ever higher percentiles, as long as enough values lie above them.
func spectrum(h *hdrhistogram.Histogram) [][2]float64 {
	points := [][2]float64{}
	n := float64(h.TotalCount())
	const steps = 12 // number of points for each factor of ten
	for i := 0; n > 0; i++ {
		x := math.Pow(10, float64(i)/steps)
		if i > 0 && !results.Supports(1-1/x, h.TotalCount()) {
			break
		}
		points = append(points, [2]float64{x, float64(h.ValueAtQuantile(100 * (1 - 1/x)))})
	}
	return points
}

func newHeat(seconds []*hdrhistogram.Histogram) *heatMap {
	m := &heatMap{Per: heatRows, Cells: [][3]float64{}}
	first, last := math.MaxInt32, 0
	for i, h := range seconds {
		if h == nil {
			continue
		}
		rows := map[int]int64{}
		for _, bar := range h.Distribution() {
			if bar.Count > 0 {
				rows[int(math.Floor(heatRows*math.Log10(float64(max(bar.From, 1)))))] += bar.Count
			}
		}
		for row, n := range rows {
			first, last = min(first, row), max(last, row)
			m.Cells = append(m.Cells, [3]float64{float64(i), float64(row), float64(n)})
		}
	}
	if len(m.Cells) > 0 {
		m.First = first
	}
	m.Rows = last - m.First + 1
	slices.SortFunc(m.Cells, func(a, b [3]float64) int {
		return cmp.Or(cmp.Compare(a[0], b[0]),
			cmp.Compare(a[1], b[1]))
	})
	return m
}
