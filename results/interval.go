package results

import "time"

// Tags of the histograms in the log of a run.
const (
	acquireTag  = "acquire"
	responseTag = "response"
	handoffTag  = "handoff"
)

const intervalWidth = time.Second

// interval keeps coarse histograms of the current second and hands them on when it is over.
type interval struct {
	emit func(tag string, from, to time.Duration, l *Latency)
	from time.Duration
	tags []string
	now  map[string]*Latency
}

func newInterval(o MeterOptions) interval {
	return interval{emit: o.Interval, from: o.From, tags: []string{acquireTag, responseTag, handoffTag},
		now: map[string]*Latency{acquireTag: newCoarse(), responseTag: newCoarse(), handoffTag: newCoarse()}}
}

// record adds a duration that came to its end at the given time. Times ascend; what is a little late counts in the
// current second.
func (i *interval) record(tag string, at, d time.Duration) {
	if at >= i.from+intervalWidth {
		i.flush(at)
	}
	i.now[tag].record(d)
}

// flush hands the second on and begins the one that holds the given time.
func (i *interval) flush(at time.Duration) {
	for _, tag := range i.tags {
		l := i.now[tag]
		if l.count > 0 && i.emit != nil {
			i.emit(tag, i.from, i.from+intervalWidth, l)
		}
		l.hist.Reset()
		*l = Latency{hist: l.hist}
	}
	i.from += (at - i.from) / intervalWidth * intervalWidth
}
