package cli

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hammerlock/internal/harness"
)

// metricsServer shows the last event of a job to whoever asks. It knows nothing but what it was told.
type metricsServer struct {
	last    atomic.Pointer[harness.Event]
	listen  net.Listener
	server  *http.Server
	serving sync.WaitGroup
}

// Prometheus wants to be answered within its scrape interval.
const (
	scrapeTimeout   = 5 * time.Second
	shutdownTimeout = time.Second
)

// serveMetrics begins to listen and to serve.
func serveMetrics(address string) (*metricsServer, error) {
	listen, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	m := &metricsServer{listen: listen}
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Timeout: scrapeTimeout}))
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: scrapeTimeout}
	m.serving.Go(func() { _ = m.server.Serve(listen) }) // it ends when the server is closed
	return m, nil
}

func (m *metricsServer) address() string { return m.listen.Addr().String() }

// tell shows an event. It is safe on nil, as close is.
func (m *metricsServer) tell(event harness.Event) {
	if m == nil {
		return
	}
	if last := m.last.Load(); event.Live.At == 0 && last != nil && last.Number == event.Number {
		event.Live = last.Live // a change of phase says nothing of the visits
	}
	m.last.Store(&event)
}

// close ends the serving; a scrape in progress is waited for a moment.
func (m *metricsServer) close(ctx context.Context) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if m.server.Shutdown(ctx) != nil {
		_ = m.server.Close()
	}
	m.serving.Wait()
}

var live = struct{ up, phase, at, done, errors, waiting, acquire *prometheus.Desc }{
	up:      describe("run", "number of the run that goes on, and of how many", "of"),
	phase:   describe("phase", "1 for what the suite is doing", "phase"),
	at:      describe("elapsed_seconds", "since the workers of the run were let loose"),
	done:    describe("visits_total", "counted visits of the run within its measurement"),
	errors:  describe("errors_total", "operations of the run that did not go well"),
	waiting: describe("waiting_workers", "workers that wait for a lock"),
	acquire: describe("acquire_seconds", "waits of the winners of the current second", "quantile"),
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hammerlock_"+name, help, append([]string{"topology", "lock"}, labels...), nil)
}

// Describe and Collect make the server a collector of its own last event.
func (m *metricsServer) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect says what the last event said.
func (m *metricsServer) Collect(to chan<- prometheus.Metric) {
	e := m.last.Load()
	if e == nil {
		return
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		labels = append([]string{e.Combination.Topology.Name, e.Combination.Lock.Name}, labels...)
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	l := e.Live
	send(live.up, prometheus.GaugeValue, float64(e.Number), strconv.Itoa(e.Of))
	send(live.phase, prometheus.GaugeValue, 1, string(e.Phase))
	send(live.at, prometheus.GaugeValue, l.At.Seconds())
	send(live.done, prometheus.CounterValue, float64(l.Done))
	send(live.errors, prometheus.CounterValue, float64(l.Errors))
	send(live.waiting, prometheus.GaugeValue, float64(l.Waiting))
	send(live.acquire, prometheus.GaugeValue, l.P50.Seconds(), "0.5")
	send(live.acquire, prometheus.GaugeValue, l.P99.Seconds(), "0.99")
}
