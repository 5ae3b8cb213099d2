package results

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Metric is a number that describes a run. Users compare metrics, assert limits for them, and search for loads by
// them.
type Metric struct {
	Name  string
	More  bool   // greater values are better
	Facet string // the quality of the lock that it measures, one of Facets
	Of    func(*Run) Reading
	unit  unit
	Word  string // the entry of internal/glossary that defines it
}

// unit says how the values of a metric are written.
type unit int

const (
	number unit = iota
	nanoseconds
	perSecond
	share // 0 to 1
)

const (
	fair     = "fairer"
	patience = "kinder to those who wait"
	expense  = "cheaper"
	speed    = "faster"
	work     = "more productive"
	accident = "calmer"
)

// Facets lists the qualities of a lock that metrics measure. The summary of a comparison has the same order.
var Facets = []string{fair, patience, expense, speed, work, accident}

// Support says how reliable a reading is.
type Support int

const (
	NoData  Support = iota
	TooFew          // too few observations for this percentile
	AtLeast         // the true value may be greater, because too many waits did not end
	Supported
)

// Reading is the value of a metric in a run.
type Reading struct {
	Value   float64
	Support Support
	Times   float64 // with TooFew: the factor by which the run should have been longer
}

type distribution struct {
	name, word, facet string
	row, visits       string // names in the table of a run, and in that of a service; empty = not shown
	of                func(*Run) *Percentiles
}

// distributions lists the latencies from which metrics such as response.p99 are computed.
var distributions = []distribution{
	{"acquire", "acquire", speed, "acquire (winners)", "", func(r *Run) *Percentiles { return &r.Latency.Acquire }},
	{"acquire_with_unfinished", "with unfinished", patience, "acquire with unfinished", "",
		func(r *Run) *Percentiles { return &r.Waiting.Unfinished }},
	{"random_waiter", "random waiter", patience, "a random waiter's wait", "",
		func(r *Run) *Percentiles { return &r.Waiting.RandomWaiter }},
	{"response", "response", speed, "response (from due)", "response (from due)",
		func(r *Run) *Percentiles { return &r.Latency.Response }},
	{"response_with_unfinished", "response with unfinished", speed, "response with unfinished",
		"response with unfinished",
		func(r *Run) *Percentiles { return &r.Waiting.Response }},
	{"handoff", "hand-off", speed, "hand-off", "", func(r *Run) *Percentiles { return &r.Latency.Handoff }},
	{"try", "try", speed, "one try", "one request", func(r *Run) *Percentiles { return &r.Latency.Try }},
	{"hold", "hold", speed, "hold", "", func(r *Run) *Percentiles { return &r.Latency.Hold }},
	{"release", "release", speed, "release", "", func(r *Run) *Percentiles { return &r.Latency.Release }},
}

type statistic struct {
	name     string
	of       func(*Percentiles) *int64
	quantile float64 // 0 = not a quantile
}

var statistics = []statistic{
	{"p50", func(p *Percentiles) *int64 { return p.P50 }, 0.5},
	{"p90", func(p *Percentiles) *int64 { return p.P90 }, 0.9},
	{"p99", func(p *Percentiles) *int64 { return p.P99 }, 0.99},
	{"p999", func(p *Percentiles) *int64 { return p.P999 }, 0.999},
	{"max", func(p *Percentiles) *int64 { return &p.Max }, 0},
	{"mean", func(p *Percentiles) *int64 { return &p.Mean }, 0},
}

func (p *Percentiles) reading(s statistic) Reading {
	v := s.of(p)
	switch {
	case p.Count == 0:
		return Reading{}
	case v == nil:
		return Reading{Support: TooFew, Times: max(beyond/(1-s.quantile)/float64(p.Count), 2)}
	case *v == int64(Beyond), v == &p.Max && p.Open:
		return Reading{Value: float64(p.Max), Support: AtLeast}
	default:
		return Reading{Value: float64(*v), Support: Supported}
	}
}

var Metrics = slices.Concat(latencyMetrics(), []Metric{
	{"throughput", true, work, func(r *Run) Reading { return known(r.Throughput, r.Measured > 0) }, perSecond,
		"throughput"},
	{"fairness.jain", true, fair, func(r *Run) Reading { return known(r.Fairness.Jain, r.Fairness.Jain > 0) }, share,
		"jain"},
	{"fairness.starving", false, fair, func(r *Run) Reading {
		return known(float64(r.Fairness.Starving),
			r.Visits.Done > 0)
	}, number, "starving"},
	{"fairness.idle", false, work, func(r *Run) Reading { return maybe(r.Fairness.IdleShare) }, share, "idle"},
	{"cost.round_trips", false, expense, func(r *Run) Reading { return maybe(r.Cost.RoundTrips) }, number, "trips"},
	{"cost.commands", false, expense, func(r *Run) Reading { return maybe(r.Cost.Commands) }, number, "commands"},
	{"cost.server_cpu", false, expense, func(r *Run) Reading { return maybe(r.Cost.ServerCPU) }, nanoseconds,
		"server cpu"},
	{"visits.timeout", false, accident, attempted(func(v *Visits) int64 { return v.Timeout }), number, "timed out"},
	{"visits.failed", false, accident, attempted(func(v *Visits) int64 { return v.Failed }), number, "failed"},
	{"visits.unknown", false, accident, attempted(func(v *Visits) int64 { return v.Unknown }), number, "unknown"},
	{"visits.skipped", false, accident, attempted(func(v *Visits) int64 { return v.Skipped }), number, "skipped"},
	{"unavailable.total", false, accident, unavailable(func(a *Availability) int64 { return a.Total }), nanoseconds,
		"unavailable"},
	{"unavailable.longest", false, accident, unavailable(func(a *Availability) int64 { return a.Longest }), nanoseconds,
		"unavailable"},
	{"recovery.longest", false, accident, recovered, nanoseconds, "recovery"},
	{"counter.lost", false, accident, func(r *Run) Reading {
		return known(float64(r.Views.Lost),
			r.Views.Acknowledged > 0)
	}, number, "lost"},
})

// Headline lists the metrics that a comparison uses by default. There are few of them: the more metrics are
// compared, the more differences appear by chance.
var Headline = []string{"throughput", "response.p50", "response.p99", "random_waiter.p50", "fairness.jain",
	"cost.round_trips", "cost.commands"}

func latencyMetrics() (all []Metric) {
	for _, d := range distributions {
		for _, s := range statistics {
			all = append(all, Metric{Name: d.name + "." + s.name, Word: d.word, unit: nanoseconds, Facet: d.facet,
				Of: func(r *Run) Reading { p := d.of(r); return p.reading(s) }})
		}
	}
	return all
}

func known(x float64, is bool) Reading {
	if !is || math.IsNaN(x) {
		return Reading{}
	}
	return Reading{Value: x, Support: Supported}
}

func maybe(x *float64) Reading {
	if x == nil {
		return Reading{}
	}
	return Reading{Value: *x, Support: Supported}
}

func attempted(of func(*Visits) int64) func(*Run) Reading {
	return func(r *Run) Reading { return known(float64(of(&r.Visits)), r.Visits.Begun+r.Visits.Skipped > 0) }
}

// FindMetric returns the metric with this name. If the name is unknown, the error suggests or lists names.
func FindMetric(name string) (Metric, error) {
	for _, m := range Metrics {
		if m.Name == name {
			return m, nil
		}
	}
	if meant := meantMetric(name); meant != "" {
		return Metric{}, fmt.Errorf("no metric %q%s bench explain metrics has all", name, meant)
	}
	return Metric{}, fmt.Errorf("no metric %q: there is %s", name, MetricNames())
}

func FindMetrics(names []string) (all []Metric, err error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("no name: there is %s", MetricNames())
	}
	for _, name := range names {
		m, wrong := FindMetric(name)
		all, err = append(all, m), errors.Join(err, wrong)
	}
	return all, err
}

// metric returns the metric with this name. It panics if the name is unknown.
func metric(name string) Metric {
	m, err := FindMetric(name)
	if err != nil {
		panic(err)
	}
	return m
}

// meantMetric returns a text that suggests a metric for an unknown name; empty = no suggestion. For the bare name of
// a statistic, such as "p99", it prefers the one of response times.
func meantMetric(name string) string {
	var names, parts []string
	for _, m := range Metrics {
		names = append(names, m.Name)
		switch group, part, _ := strings.Cut(m.Name, "."); {
		case part != name:
		case group == "response":
			parts = append([]string{m.Name}, parts...)
		default:
			parts = append(parts, m.Name)
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-. ", r) })
	meant := human.Meant(name, names)
	for _, n := range names {
		_, part, _ := strings.Cut(n, ".")
		if meant == "" && slices.Contains(words, part) { // for example, lost_updates stands for counter.lost
			parts = append(parts, n)
		}
	}
	if len(parts) > 0 {
		return "; did you mean " + parts[0] + "?"
	}
	return meant
}

// MetricNames returns the names in a short form: statistics such as p99 are listed once for all latencies.
func MetricNames() string {
	percentiles := human.Names(statistics, func(s statistic) string { return s.name })
	names := human.Names(distributions, func(d distribution) string { return d.name })
	rest := human.Names(Metrics[len(distributions)*len(statistics):], func(m Metric) string { return m.Name })
	return fmt.Sprintf("%s, each with .%s; %s", strings.Join(names, ", "), strings.Join(percentiles, " ."),
		strings.Join(rest, ", "))
}

// Direction says whether greater or smaller values are better.
func (m Metric) Direction() string {
	if m.More {
		return "more is better"
	}
	return "less is better"
}

// Says describes the unit of the metric, and which values are better.
func (m Metric) Says() string {
	return map[unit]string{number: "a number", nanoseconds: "a duration, as in 50ms",
		perSecond: "visits a second, as in 1000/s",
		share:     "a share, as in 0.8 or 80%"}[m.unit] + "; " + m.Direction()
}

// WriteMetrics writes one line for each metric: its name, its glossary entry and its unit. The statistics of a latency
// share one line.
func WriteMetrics(w io.Writer) error {
	p := &human.Printer{W: w}
	ends := human.Names(statistics, func(s statistic) string { return "." + s.name })
	const row = "  %-26s %-26s %s"
	for i, d := range distributions {
		p.Line(row, d.name+".", d.word, Metrics[i*len(statistics)].Says())
	}
	p.Line("  each of these with one of %s", strings.Join(ends, " "))
	for _, m := range Metrics[len(distributions)*len(statistics):] {
		p.Line(row, m.Name, m.Word, m.Says())
	}
	return p.Err
}

func (m Metric) Format(v float64) string { return m.FormatBeside(v, v) }

// FormatBeside formats a value with enough digits to show that it differs from a limit.
func (m Metric) FormatBeside(v, limit float64) string {
	switch m.unit {
	case nanoseconds:
		return human.DurationBeside(time.Duration(v), time.Duration(limit))
	case perSecond:
		return human.NumberBeside(v, limit) + "/s"
	default:
		return human.NumberBeside(v, limit)
	}
}

// Text formats the metric's value in a run. "-" means that the value is unknown, and ">" that it is only a lower
// bound.
func (m Metric) Text(r *Run) string {
	switch x := m.Of(r); x.Support {
	case NoData, TooFew:
		return "-"
	case AtLeast:
		return ">" + m.Format(x.Value)
	default:
		return m.Format(x.Value)
	}
}

// Parse reads a value with the unit of the metric.
func (m Metric) Parse(text string) (float64, error) {
	switch {
	case m.unit == nanoseconds:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q: %s is a duration with a unit, as in 500us, 50ms or 1.5s", text, m.Name)
		}
		return float64(d), m.negative(float64(d))
	case m.unit == perSecond:
		text = strings.TrimSuffix(text, "/s")
	case m.unit == share && strings.HasSuffix(text, "%"):
		number, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		text = strconv.FormatFloat(number/100, 'g', -1, 64)
		if err != nil {
			text = ""
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case m.unit == share && !(err == nil && x >= 0 && x <= 1):
		return 0, fmt.Errorf("%s is a share, from 0 to 1, or from 0%% to 100%%", m.Name)
	case err != nil || math.IsNaN(x):
		return 0, fmt.Errorf("%q: %s is compared with a number", text, m.Name)
	}
	return x, m.negative(x)
}

// negative returns an error if x is below 0, because no metric is.
func (m Metric) negative(x float64) error {
	if x < 0 {
		return fmt.Errorf("%s is never negative; a change that a comparison may not show is in percent, as in %s<-5%%",
			m.Name, m.Name)
	}
	return nil
}

// Least stands for 0 in a ratio of two values, which would be infinite. It is half of the smallest step of the
// metric: half of 1 % for a share, and half of 1 for other units.
func (m Metric) Least() float64 {
	if m.unit == share {
		return 0.005
	}
	return 0.5
}

// Timed reports whether the metric is wrong if the load generator was too slow.
func (m Metric) Timed() bool { return m.Facet == speed || m.Facet == patience || m.Facet == work }
