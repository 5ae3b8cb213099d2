package report

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/results"
)

// The strip is the picture of who held the lock when. Its size is limited, however long the run is. A coarse and a
// fine picture of the whole run show every event. Single visits are only shown in windows, parts of the run around
// evidence, overlaps and faults.
const (
	stripCoarse   = 240_000 // number of cells: workers times intervals of time
	stripFine     = 1_200_000
	stripVisits   = 60_000 // if there are no more visits, all are shown
	stripOverlaps = 20_000 // if there are no more overlaps, all are listed; otherwise evenly chosen ones
	windowVisits  = 500    // usual number of visits in a window
	// Largest number of windows around overlaps. Windows around evidence, faults and random times come on top.
	windowsMost = 60
)

// ownership is the data of the strip: who held the lock when.
type ownership struct {
	Workers  int   `json:"workers"`
	End      int64 `json:"end"`
	Visits   int   `json:"visits"` // number of visits of the run
	Kept     int   `json:"kept"`
	Overlaps int   `json:"overlaps"`
	// Late counts the overlaps that would not exist if workers had stopped at the end of their leases.
	Late     int          `json:"late"`
	Every    int          `json:"every"` // every n-th overlap is listed
	Excludes bool         `json:"excludes"`
	Keys     int          `json:"keys"`
	Windows  []stripRange `json:"windows"`
	Tiers    []stripTier  `json:"tiers"`
	Marks    []stripMark  `json:"marks"`

	visits   []stripVisit
	overlaps []overlap
}

// stripRange is a window: a part of the run, of which the page has all visits. Why says what is in it.
type stripRange struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Why  string `json:"why"`
}

// stripMark marks an operation that is evidence for a failure.
type stripMark struct {
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Worker  int32  `json:"worker"`
	Key     int32  `json:"key"`
	Kind    string `json:"kind"`
	Checker string `json:"checker"`
}

// stripTier is a picture of the whole run, divided into Buckets intervals of equal length. A plane is a table for
// one activity: a row for each worker, and in each cell the share of the interval for which the worker did it.
type stripTier struct {
	Buckets int `json:"buckets"`
	planes  [planes][]float32
}

// The planes of a tier, in the order in which the page's data has them.
const (
	holding = iota
	waiting
	overlapping
	planes
)

// buildStrip reads the operations twice: first it chooses the windows, then it collects their visits.
func buildStrip(source operations, run *results.Run) (*ownership, error) {
	s := &ownership{Keys: run.Keys, Every: 1, Marks: marks(run), Windows: []stripRange{}}
	survey, err := readVisits(source, s.found, func(*stripVisit) { s.Visits++ })
	if err != nil {
		return nil, err
	}
	s.End, s.Workers = int64(max(survey.last, 1)), max(len(survey.workers), 1)
	slices.SortFunc(s.overlaps, func(a, b overlap) int { return cmp.Compare(a.from, b.from) })
	s.choose(run)
	s.addTier(stripCoarse, 256, 2048)
	if s.Visits > stripVisits {
		s.addTier(stripFine, 1024, 32768)
	}
	_, err = readVisits(source, func(o overlap) {
		s.paint(overlapping, o.a, o.from, o.to)
		s.paint(overlapping, o.b, o.from, o.to)
	}, s.take)
	if err != nil {
		return nil, err
	}
	s.Kept = len(s.visits)
	slices.SortFunc(s.visits, func(a, b stripVisit) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.from, b.from))
	})
	return s, nil
}

// found lists an overlap. If the list is full, it drops every second overlap. From then on it lists only half as
// many.
func (s *ownership) found(o overlap) {
	if o.late {
		s.Late++
	}
	if s.Overlaps++; (s.Overlaps-1)%s.Every != 0 {
		return
	}
	if s.overlaps = append(s.overlaps, o); len(s.overlaps) < stripOverlaps {
		return
	}
	for i := range len(s.overlaps) / 2 {
		s.overlaps[i] = s.overlaps[2*i]
	}
	s.overlaps = s.overlaps[:len(s.overlaps)/2]
	s.Every *= 2
}

func marks(run *results.Run) []stripMark {
	all := []stripMark{}
	for _, v := range run.Verdicts {
		if v.Status != checker.Fail {
			continue
		}
		for i := range v.Evidence {
			op := &v.Evidence[i]
			all = append(all, stripMark{int64(op.Call), int64(op.Latest()), op.Worker, op.Key, op.Kind.String(),
				v.Checker})
		}
	}
	return all
}

// choose chooses the windows: the whole run if it has few visits; otherwise parts with about windowVisits visits
// each.
func (s *ownership) choose(run *results.Run) {
	if s.Visits <= stripVisits {
		s.Windows = append(s.Windows, stripRange{0, s.End, "the whole run"})
		return
	}
	half := max(s.End/int64(s.Visits)*windowVisits/2, 1000)
	covered := int64(-1)
	around := func(from, to int64, why string) {
		to = min(to, from+4*half) // of a long period, show only the beginning
		s.Windows = append(s.Windows, stripRange{max(from-half, 0), min(to+half, s.End), why})
	}
	for _, m := range s.Marks[:min(len(s.Marks), windowsMost)] {
		around(m.From, m.To, "evidence of "+m.Checker)
	}
	var clusters []overlap
	for _, o := range s.overlaps {
		if int64(o.from) > covered {
			clusters = append(clusters, o)
			covered = int64(o.from) + half
		}
	}
	step := max(1, (len(clusters)+windowsMost-1)/windowsMost)
	for i := 0; i < len(clusters); i += step {
		around(int64(clusters[i].from), int64(clusters[i].to), "an overlap")
	}
	for _, f := range run.Windows[:min(len(run.Windows), windowsMost/2)] {
		for _, at := range []time.Duration{f.Injected, f.Healing} {
			if int64(at) <= s.End {
				around(int64(at), int64(at), "a fault")
			}
		}
	}
	random := rand.New(rand.NewPCG(run.Seed, 1<<40))
	for range windowsMost / 4 {
		at := random.Int64N(s.End)
		around(at, at, "drawn at random")
	}
	s.merge()
}

// merge sorts the windows by time, and joins windows that overlap or touch.
func (s *ownership) merge() {
	slices.SortFunc(s.Windows, func(a, b stripRange) int { return cmp.Compare(a.From, b.From) })
	merged := s.Windows[:1]
	for _, w := range s.Windows[1:] {
		last := &merged[len(merged)-1]
		if w.From > last.To {
			merged = append(merged, w)
			continue
		}
		last.To = max(last.To, w.To)
		if last.Why != w.Why {
			last.Why = "evidence, overlaps and faults"
		}
	}
	s.Windows = merged
}

func (s *ownership) addTier(cells, least, most int) {
	t := stripTier{Buckets: min(max(cells/s.Workers, least), most)}
	for i := range t.planes {
		t.planes[i] = make([]float32, t.Buckets*s.Workers)
	}
	s.Tiers = append(s.Tiers, t)
}

// take paints a visit, and keeps its details if it is in a window.
func (s *ownership) take(v *stripVisit) {
	waited := v.end
	if v.grant != history.Forever {
		waited = v.grant
		s.paint(holding, v.worker, v.grant, v.held())
	}
	s.paint(waiting, v.worker, v.from, waited)
	if len(s.visits) >= 2*stripVisits {
		return
	}
	i, _ := slices.BinarySearchFunc(s.Windows, int64(v.from), func(w stripRange, at int64) int {
		return cmp.Compare(w.To, at)
	})
	if i < len(s.Windows) && s.Windows[i].From <= int64(v.end) {
		s.visits = append(s.visits, *v)
	}
}

// paint adds a period to the worker's cells, in the given plane of every tier.
func (s *ownership) paint(plane int, worker int32, from, to time.Duration) {
	to = min(to, time.Duration(s.End))
	if to < from || int(worker) >= s.Workers {
		return
	}
	for i := range s.Tiers {
		t := &s.Tiers[i]
		width := float64(s.End) / float64(t.Buckets)
		row := t.planes[plane][int(worker)*t.Buckets:][:t.Buckets]
		a, b := float64(from)/width, float64(to)/width
		first, last := min(int(a), t.Buckets-1), min(int(b), t.Buckets-1)
		if first == last {
			row[first] += float32(max(b-a, 1e-9))
			continue
		}
		row[first] += float32(float64(first+1) - a)
		for k := first + 1; k < last; k++ {
			row[k]++
		}
		row[last] += float32(b - float64(last))
	}
}

func shares(plane []float32) []byte {
	b := make([]byte, len(plane))
	for i, x := range plane {
		b[i] = Share(float64(x))
	}
	return b
}

// Share encodes a share in one byte for the page's script. Only the share 0 becomes 0. The other 15 values are few,
// so that planes compress well. They follow the square root of the share, because most shares are small.
func Share(x float64) byte {
	if x <= 0 {
		return 0
	}
	return byte(min(max(math.Round(15*math.Sqrt(x)), 1), 15) * 17)
}
