package cli

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"hammerlock/internal/measure"
)

// distribution is a histogram with fixed buckets. For a Prometheus that asks for native histograms, it also has one.
type distribution struct {
	prometheus.Metric
	native prometheus.Metric
}

func (d distribution) Write(to *dto.Metric) error {
	var native dto.Metric
	if err := errors.Join(d.Metric.Write(to), d.native.Write(&native)); err != nil {
		return err
	}
	h, n := to.Histogram, native.Histogram
	h.Schema, h.ZeroThreshold, h.ZeroCount = n.Schema, n.ZeroThreshold, n.ZeroCount
	h.PositiveSpan, h.PositiveDelta = n.PositiveSpan, n.PositiveDelta
	return nil
}

// histogram converts a distribution of measured times into a Prometheus histogram.
func histogram(d *prometheus.Desc, b *measure.Buckets) prometheus.Metric {
	count, below := uint64(0), map[float64]uint64{}
	for i, n := range b.In {
		if count += n; i < len(measure.Bounds) {
			below[measure.Bounds[i].Seconds()] = count
		}
	}
	native := map[int]int64{}
	for i, n := range b.Native {
		if n > 0 {
			native[i+measure.NativeFirst] = int64(n)
		}
	}
	return distribution{prometheus.MustNewConstHistogram(d, count, b.Sum.Seconds(), below),
		prometheus.MustNewConstNativeHistogram(d, count, b.Sum.Seconds(), native, nil, 0, measure.NativeSchema, 0,
			time.Time{})}
}
