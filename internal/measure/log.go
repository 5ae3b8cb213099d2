package measure

import (
	"cmp"
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// intervalWidth is the length of the period that one entry of the log covers.
const intervalWidth = time.Second

// interval has the histograms of the current second. When the second is over, it writes them to the latency log. The
// format is HdrHistogram log, version 2, which common tools read. Values are in nanoseconds, but maxima in
// milliseconds.
type interval struct {
	log  *hdrhistogram.HistogramLogWriter // nil = there is no log
	from time.Duration

	acquire, response, handoff *histogram

	least, most time.Duration // smallest and largest median of the acquire latency in any second
}

func newInterval(from time.Duration, log io.Writer, started time.Time) interval {
	i := interval{from: from, acquire: newCoarse(), response: newCoarse(), handoff: newCoarse()}
	if log == nil {
		return i
	}
	i.log = hdrhistogram.NewHistogramLogWriter(log)
	ms := started.UnixMilli()
	// errors are dropped here: the owner of the writer checks for them
	_ = errors.Join(
		i.log.OutputComment("[Logged with Hammerlock: latencies in ns, maxima in ms]"),
		i.log.OutputLogFormatVersion(),
		i.log.OutputStartTime(ms),
		i.log.OutputBaseTime(ms),
		i.log.OutputLegend(),
	)
	return i
}

// record adds a duration that ended at the given time. Times must ascend. A time before the current second counts in
// the current second.
func (i *interval) record(h *histogram, at, d time.Duration) {
	if at >= i.from+intervalWidth {
		i.flush(at)
	}
	h.record(d)
}

// flush writes the current second to the log. It then starts the second that contains the given time.
func (i *interval) flush(at time.Duration) {
	if p50 := i.acquire.quantile(0.5); i.acquire.count > 0 {
		i.least, i.most = min(cmp.Or(i.least, p50), p50), max(i.most, p50)
	}
	i.write("acquire", i.acquire)
	i.write("response", i.response)
	i.write("handoff", i.handoff)
	i.from += (at - i.from) / intervalWidth * intervalWidth
}

func (i *interval) write(tag string, h *histogram) {
	if h.count > 0 && i.log != nil {
		b := h.buckets()
		b.SetTag(tag)
		b.SetStartTimeMs(i.from.Milliseconds())
		b.SetEndTimeMs((i.from + intervalWidth).Milliseconds())
		_ = i.log.OutputIntervalHistogram(b) // the owner of the writer checks for errors
	}
	h.clear()
}
