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

	acquire, response, handoff *Latency
}

func newInterval(o MeterOptions) interval {
	return interval{emit: o.Interval, from: o.From, acquire: newCoarse(), response: newCoarse(), handoff: newCoarse()}
}

// record adds to one of its histograms a duration that came to its end at the given time. Times ascend; what is a little
// late counts in the current second.
func (i *interval) record(l *Latency, at, d time.Duration) {
	if at >= i.from+intervalWidth {
		i.flush(at)
	}
	l.record(d)
}

// flush hands the second on and begins the one that holds the given time.
func (i *interval) flush(at time.Duration) {
	i.hand(acquireTag, i.acquire)
	i.hand(responseTag, i.response)
	i.hand(handoffTag, i.handoff)
	i.from += (at - i.from) / intervalWidth * intervalWidth
}

func (i *interval) hand(tag string, l *Latency) {
	if l.count > 0 && i.emit != nil {
		i.emit(tag, i.from, i.from+intervalWidth, l)
	}
	l.clear()
}
