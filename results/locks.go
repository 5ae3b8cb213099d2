package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Locks has the measurements of the locks that a program under test uses.
type Locks struct {
	Numbers []LockNumbers `json:"numbers"`
	// The ten locks with the most requests in the last minutes, in descending order.
	Hot []HotLock `json:"hot"`
}

// LockNumbers has the measurements of the locks whose keys match a pattern and that one program uses.
type LockNumbers struct {
	Pattern string `json:"pattern"`
	// Program is the name or address of the clients. It is empty if their requests were not observed, but only a
	// replication stream.
	Program string `json:"program,omitempty"`
	Grants  int64  `json:"grants"`
	// Releases counts holds that were released before their leases ended. Expired counts holds that lasted until
	// their leases ended.
	Releases    int64            `json:"releases"`
	Expired     int64            `json:"expired"`
	Endless     int64            `json:"without_expiry"`
	Violations  map[string]int64 `json:"violations"` // by cause
	HeldNow     int64            `json:"held_now"`
	HeldLongest int64            `json:"held_longest_now_ns"` // how long the oldest current hold has lasted
	// HeldMean is the mean number of locks that were held, from the first command on one of them. For a single lock
	// this is the share of the time for which it was held.
	HeldMean float64     `json:"held_mean"`
	Hold     Percentiles `json:"hold"`
	// OfLease is the length of a hold as a share of its lease. It can be more than 1 if the lease was extended.
	OfLease Shares `json:"hold_of_lease"`
	// Clients has the numbers that only requests of clients show; nil if only a replication stream was observed.
	Clients *LockClients `json:"clients,omitempty"`
}

// Shares has percentiles of shares; 1 = 100 %. A percentile is null if there are too few cases.
type Shares struct {
	Count int64    `json:"count"`
	P50   *float64 `json:"p50"`
	P99   *float64 `json:"p99"`
}

// LockClients has the measurements of clients that request locks.
type LockClients struct {
	Waiting     int64 `json:"waiting_now"`
	MostWaiting int64 `json:"waiting_most"`
	Longest     int64 `json:"waiting_longest_now_ns"` // length of the longest current wait
	// A wait begins with the first refused try. Waits that go on or were given up count with their length so far.
	Wait    Percentiles `json:"wait"`
	Refused int64       `json:"refused"`
	Tries   *float64    `json:"tries_per_grant"` // null if there was no grant
	Late    int64       `json:"late_releases"`   // releases without an effect: the holder had lost the lock
	Foreign int64       `json:"foreign_releases"`
	HandOff Percentiles `json:"hand_off"` // time from the end of a hold to the grant to a waiting client
}

type HotLock struct {
	Key    string `json:"key"`
	Since  int64  `json:"since_ns"` // the counts begin at this time in the run
	Grants int64  `json:"grants"`
	// Held is the share of the time for which the lock was held. It is the mean number of holds if the lock can have
	// several at the same time.
	Held    float64 `json:"held"`
	Refused *int64  `json:"refused,omitempty"` // nil, as Waiting, if only a replication stream was observed
	Waiting *int64  `json:"waiting_now,omitempty"`
}

// Text describes the measurements in one line.
func (n *LockNumbers) Text() string {
	parts := []string{human.Quantity(n.Grants, "grant")}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	some := func(count int64, what string) {
		if count > 0 {
			add("%s × %s", human.Count(count), what)
		}
	}
	c := n.Clients
	if c != nil {
		if c.Tries != nil {
			add("%s tries a grant", human.Number(*c.Tries))
		}
		add("%s waiting, at most %s", human.Count(c.Waiting), human.Count(c.MostWaiting))
		if add("%s", human.Quantity(c.Wait.Count, "wait")); c.Wait.Count > 0 {
			parts[len(parts)-1] += ": " + c.Wait.three()
		}
	}
	add("held p50 %s, p99 %s", n.Hold.Text(n.Hold.P50), n.Hold.Text(n.Hold.P99))
	add("%s held on average", human.Number(n.HeldMean))
	if n.OfLease.P50 != nil {
		add("half of the holders need at most %s %% of the lease", human.Number(100**n.OfLease.P50))
	}
	if c != nil && c.HandOff.P50 != nil {
		add("hand-off p50 %s", c.HandOff.Text(c.HandOff.P50))
	}
	some(n.Expired, "lease ended under its holder")
	if c != nil {
		some(c.Late, "late release")
	}
	some(n.Endless, "no expiry")
	for _, cause := range slices.Sorted(maps.Keys(n.Violations)) {
		some(n.Violations[cause], cause)
	}
	return strings.TrimSpace(n.Pattern+" "+n.Program) + ": " + strings.Join(parts, " · ")
}

func (p *Percentiles) three() string {
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s", p.Text(p.P50), p.Text(p.P90), p.Text(p.P99))
}

func (h *HotLock) Text() string {
	text := fmt.Sprintf("%s %s, %s %% held", h.Key, human.Quantity(h.Grants, "grant"), human.Number(100*h.Held))
	if h.Refused != nil {
		text += fmt.Sprintf(", %s refused, %s waiting", human.Count(*h.Refused), human.Count(*h.Waiting))
	}
	return text
}

// Facts returns one line for each element of Numbers, and one line for the locks in Hot.
func (l *Locks) Facts() (all []Fact) {
	for i := range l.Numbers {
		all = append(all, Fact{Label: "locks", Text: l.Numbers[i].Text()})
	}
	var hot []string
	for i := range l.Hot {
		hot = append(hot, l.Hot[i].Text())
	}
	if len(hot) > 1 {
		all = append(all, Fact{Label: "hot", Text: strings.Join(hot, " · ")})
	}
	return all
}

// OfLease converts percentiles from millionths of a lease to shares.
func OfLease(p *Percentiles) Shares {
	share := func(millionths *int64) *float64 {
		if millionths == nil {
			return nil
		}
		v := float64(*millionths) / float64(time.Millisecond)
		return &v
	}
	return Shares{Count: p.Count, P50: share(p.P50), P99: share(p.P99)}
}
