package cli

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"hammerlock/internal/measure"
	"hammerlock/results"
)

type lockLabels = prometheus.Labels

// collector sends metrics about the locks of a program that the suite watches.
type collector struct{ to chan<- prometheus.Metric }

func (c collector) desc(name, help string, labels lockLabels) *prometheus.Desc {
	for name, value := range labels {
		if !utf8.ValidString(value) { // keys and names of clients may contain any bytes
			labels[name] = strconv.Quote(value)
		}
	}
	return prometheus.NewDesc("hammerlock_lock_"+name, help, nil, labels)
}

func (c collector) send(kind prometheus.ValueType, name, help string, value float64, labels lockLabels) {
	c.to <- prometheus.MustNewConstMetric(c.desc(name, help, labels), kind, value)
}

// The function with returns a copy of the labels with one more label.
func with(labels lockLabels, name, value string) lockLabels {
	more := lockLabels{name: value}
	maps.Copy(more, labels)
	return more
}

// collectLocks sends the metrics of a watched program's locks. It omits metrics that cannot be known if only the
// replication stream of Redis is read.
func collectLocks(to chan<- prometheus.Metric, now measure.LockState) {
	c := collector{to}
	rows, hot := now.Rows, now.Hot
	for server, up := range now.Taps {
		value := 0.0
		if up {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("hammerlock_tap_up",
			"1 if the server's replication stream is being read", nil, lockLabels{"server": server}),
			prometheus.GaugeValue, value)
	}
	for i := range rows {
		labels := lockLabels{"pattern": rows[i].Pattern}
		if rows[i].Program != "" {
			labels["program"] = rows[i].Program
		}
		c.holds(&rows[i], labels)
		if rows[i].Clients != nil {
			c.clients(&rows[i], labels)
		}
	}
	for _, h := range hot {
		labels := lockLabels{"key": h.Key}
		const gauge = prometheus.GaugeValue
		c.send(gauge, "hot_grants", "grants of a hot lock", float64(h.Grants), labels)
		c.send(gauge, "hot_held_ratio", "part of the time that a hot lock is held", h.Held, labels)
		if h.Refused != nil {
			c.send(gauge, "hot_refusals", "tries in vain for a hot lock", float64(*h.Refused), labels)
			c.send(gauge, "hot_waiters", "clients that wait for a hot lock", float64(*h.Waiting), labels)
		}
	}
}

// The method holds sends the metrics that can be derived from changes of keys.
func (c collector) holds(r *measure.LockRow, labels lockLabels) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	c.send(gauge, "held", "locks that are held", float64(r.HeldNow), labels)
	c.send(gauge, "longest_hold_seconds", "for how long the oldest hold has gone on",
		time.Duration(r.HeldLongest).Seconds(), labels)
	c.send(counter, "grants_total", "locks that were granted", float64(r.Grants), labels)
	c.send(counter, "releases_total", "locks that were given back before the lease ended", float64(r.Releases), labels)
	c.send(counter, "leases_ended_total", "leases that ended under their holders", float64(r.Expired), labels)
	c.send(counter, "without_expiry_total", "locks that were held without an expiry", float64(r.Endless), labels)
	for _, cause := range slices.Sorted(maps.Keys(r.Violations)) {
		c.send(counter, "violations_total", "violations that were seen at once, by cause",
			float64(r.Violations[cause]), with(labels, "cause", cause))
	}
	for q, share := range map[float64]*float64{0.5: r.OfLease.P50, 0.99: r.OfLease.P99} {
		if share != nil {
			c.send(gauge, "hold_lease_ratio", "how much of its lease a holder needs", *share, quantile(labels, q))
		}
	}
	c.to <- histogram(c.desc("hold_seconds", "how long locks were held", labels), &r.LockTimes.Hold)
}

// The method clients sends the metrics that can only be derived from the requests of clients.
func (c collector) clients(r *measure.LockRow, labels lockLabels) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	n := r.Clients
	c.send(gauge, "waiters", "clients that wait for a lock", float64(n.Waiting), labels)
	c.send(gauge, "waiters_max", "most clients that have waited at once", float64(n.MostWaiting), labels)
	c.send(gauge, "longest_wait_seconds", "for how long the client has waited that waits longest",
		time.Duration(n.Longest).Seconds(), labels)
	c.send(counter, "refusals_total", "tries in vain", float64(n.Refused), labels)
	c.send(counter, "late_releases_total", "releases in vain: the lock was lost before", float64(n.Late), labels)
	c.send(counter, "foreign_releases_total", "releases of a lock of another client", float64(n.Foreign), labels)
	for q, wait := range map[float64]*int64{0.5: n.Wait.P50, 0.9: n.Wait.P90, 0.99: n.Wait.P99} {
		if wait == nil {
			continue
		}
		seconds := time.Duration(*wait).Seconds()
		if *wait == int64(results.Beyond) {
			seconds = math.Inf(1)
		}
		c.send(gauge, "wait_quantile_seconds",
			"of all waits from the first refused try, with those that go on or were given up", seconds,
			quantile(labels, q))
	}
	c.to <- histogram(c.desc("wait_seconds", "waits from the first refused try to the grant", labels), &r.Wait)
	c.to <- histogram(c.desc("hand_off_seconds", "from the end of a hold to the grant to a client that waited", labels),
		&r.HandOff)
}

func quantile(labels lockLabels, q float64) lockLabels {
	return with(labels, "quantile", strconv.FormatFloat(q, 'g', -1, 64))
}
