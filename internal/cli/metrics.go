package cli

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
	"hammerlock/internal/web"
	"hammerlock/results"
)

// The type numbers keeps the last event of a job and the ended runs, from which it makes metrics on request.
type numbers struct {
	last     atomic.Pointer[harness.Event]
	ended    endedRuns
	registry *prometheus.Registry // knows these metrics
}

func newNumbers() (*numbers, error) {
	n := &numbers{registry: prometheus.NewRegistry()}
	return n, n.registry.Register(n)
}

type metricsServer struct {
	*numbers
	listen  net.Listener
	server  *http.Server
	serving sync.WaitGroup
	linger  time.Duration
	over    atomic.Bool   // the runs are over
	read    chan struct{} // closed when the final values were read
	once    sync.Once
}

// Prometheus gives up a request after its scrape timeout, so an answer must not take longer.
const (
	scrapeTimeout   = 5 * time.Second
	shutdownTimeout = time.Second
)

func openMetrics(_ context.Context, e Env, o *options, address string) (show, error) {
	m, err := serveMetrics(address)
	if err == nil {
		m.linger = o.linger
		e.say(o, "metrics at http://%s/metrics", m.address())
	}
	return m, err
}

func serveMetrics(address string) (*metricsServer, error) {
	listen, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	m := &metricsServer{listen: listen, read: make(chan struct{})}
	if m.numbers, err = newNumbers(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	answer := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Timeout: scrapeTimeout})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		over := m.over.Load()
		if answer.ServeHTTP(w, r); over {
			m.once.Do(func() { close(m.read) })
		}
	})
	m.server = &http.Server{Handler: web.OwnHost(address, mux), ReadHeaderTimeout: scrapeTimeout}
	m.serving.Go(func() { _ = m.server.Serve(listen) }) // it ends when the server is closed
	return m, nil
}

func (m *metricsServer) address() string { return m.listen.Addr().String() }

// tell stores an event as the last one. An event without measurements keeps those of the event before it.
func (m *numbers) tell(event harness.Event) {
	if event.Run != nil {
		m.ended.add(event.Run)
	}
	if last := m.last.Load(); last != nil && last.Number == event.Number {
		if event.Said != "" {
			return // an event with a line has no measurements
		}
		if event.Live.At == 0 {
			event.Live, event.Snapshot = last.Live, last.Snapshot // an event about a new stage has no measurements
		}
		if event.Locks == nil {
			event.Locks = last.Locks
		}
	}
	m.last.Store(&event)
}

// close stops the server. With --metrics-linger, it first waits until the final values were read once, at most for the
// time of that flag. It lets a request in progress finish.
func (m *metricsServer) close(ctx context.Context, _ string) error {
	if m.over.Store(true); m.linger > 0 {
		select {
		case <-m.read:
		case <-time.After(m.linger):
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if m.server.Shutdown(ctx) != nil {
		_ = m.server.Close()
	}
	m.serving.Wait()
	return nil
}

// Describe and Collect implement prometheus.Collector.
func (m *numbers) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// single is a metric with one value.
type single struct {
	name, help string
	kind       prometheus.ValueType
	value      float64
	label, is  string // name and value of one label besides topology and lock; empty = none
}

// Collect sends the metrics of the last event and of the ended runs.
func (m *numbers) Collect(to chan<- prometheus.Metric) {
	e := m.last.Load()
	if e == nil {
		return
	}
	picture := e.Snapshot
	if picture == nil {
		picture = &measure.Snapshot{}
	}
	w := e.Combination.Plan.Program
	alone := w != nil && w.TapOnly || e.Explored != nil // neither of them shows clients that wait
	labels := prometheus.Labels{"topology": e.Combination.Topology.Name, "lock": e.Combination.Lock.Name}
	for _, s := range m.singles(e, picture, alone) {
		more := maps.Clone(labels)
		if s.label != "" {
			more[s.label] = s.is
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("hammerlock_"+s.name, s.help, nil, more), s.kind,
			s.value)
	}
	if picture.Fairness.Jain > 0 && !alone {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("hammerlock_fairness_jain",
			"Jain's index of the workers' visits: 1 if all have as many", nil, labels),
			prometheus.GaugeValue, picture.Fairness.Jain)
	}
	m.ended.collect(to, e)
	if e.Locks != nil {
		collectLocks(to, e.Locks())
	}
	if alone {
		return
	}
	to <- histogram(prometheus.NewDesc("hammerlock_acquire_seconds",
		"waits of those who got the lock, within the measurement", nil, labels), &picture.Acquired)
	to <- histogram(prometheus.NewDesc("hammerlock_response_seconds",
		"from when a visit was due to its end, of those within the measurement that went well", nil, labels),
		&picture.Answered)
}

// singles returns the metrics of an event that have one value. If alone is true, those about waiting clients are
// missing.
func (m *numbers) singles(e *harness.Event, picture *measure.Snapshot, alone bool) []single {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	all := []single{
		{"run", "number of the run that goes on, and of how many", gauge, float64(e.Number), "of", strconv.Itoa(e.Of)},
		{"phase", "1 for what the suite is doing", gauge, 1, "phase", string(e.Stage)},
		{"violations_total", "violations of safety: those proved while the run goes on, then those of its verdicts",
			counter, float64(max(picture.Safety.Violations, m.ended.violations(e.Name))), "", ""},
	}
	if e.Explored != nil {
		all = append(all, exploredNumbers(e)...)
	} else {
		all = append(all,
			single{"elapsed_seconds", "since the workers of the run were let loose", gauge, e.Live.At.Seconds(),
				"", ""},
			single{"faults_total", "faults that were injected in the run", counter, float64(picture.Injected), "", ""},
			single{"active_faults", "faults that are in force", gauge, float64(len(picture.Active)), "", ""})
	}
	if !alone {
		all = append(all,
			single{"waiting_workers", "workers that wait for a lock", gauge, float64(e.Live.Waiting), "", ""},
			single{"unserved_seconds", "for how long a page has been unavailable that still is, the longest", gauge,
				e.Live.Unserved.Seconds(), "", ""},
			single{"starving_workers", fmt.Sprintf("workers with less than %.0f %% of an even share of the visits",
				100*results.StarvingShare), gauge, float64(picture.Fairness.Starving), "", ""})
	}
	return all
}

// exploredNumbers returns the metrics of an exploration.
func exploredNumbers(e *harness.Event) []single {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	p := &e.Explored.Progress
	return []single{
		{"explore_schedules_total", "schedules of the exploration that were run", counter, float64(p.Schedules),
			"", ""},
		{"explore_remaining_schedules", "schedules up to the bound that still have to run, a rough number",
			gauge, float64(p.Remaining()), "", ""},
		{"explore_deviations", "the largest number of deviations of the schedules that run now", gauge,
			float64(p.Deviations), "", ""},
		{"explore_elapsed_seconds", "since the exploration began, in real time", gauge, e.Took.Seconds(), "", ""},
		{"explore_remaining_seconds", "rest of the time budget; 0 without a budget", gauge, p.Left.Seconds(), "", ""},
	}
}
