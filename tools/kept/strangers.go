package kept

import (
	"cmp"
	"fmt"
	"strings"
)

// Strangers are wrong locks from public reports, written after explore and the scenarios were finished. Nothing was
// tuned for them before their first run. They are in no catalogue: see testdata/strangers.
var Strangers = []struct{ Name, Variable, Topology, Report string }{
	{"fails-open", "failsOpen", "single", "appstrate pull request 1417"},
	{"init-resets", "initResets", "single", "bluele/redis-semaphore issue 2"},
	{"inner-release", "innerRelease", "single", "Redisson issue 891"},
	{"one-error", "oneError", "redlock", "redlock-rb issue 129, pull request 134"},
	{"pod-id", "podID", "single", "litellm issue 21225"},
	{"stale-entry", "staleEntry", "single", "Redisson issue 3714"},
	{"thread-id", "threadID", "single", "hazelcast-locks issue 5, Redisson issue 2869"},
	{"unheard-renewal", "unheardRenewal", "single", "cozy-stack pull request 4911, Redisson issue 2037"},
	{"bumped-ttl", "bumpedTTL", "single", "node-mutex issue 2, pull request 3"},
	{"deleted-signal", "deletedSignal", "single", "python-redis-lock issue 71"},
	{"drifting-places", "driftingPlaces", "single", "Redisson issues 1104, 2099"},
	{"failed-extension", "failedExtension", "redlock", "redis-plus-plus issue 24, pull request 39"},
	{"forgets-first", "forgetsFirst", "single", "redis-py issue 3847"},
	{"half-renewed", "halfRenewed", "single", "Redisson issue 4217"},
	{"local-time", "localTime", "single", "dv/redis-semaphore issue 13, retools issue 18"},
	{"no-script", "noScript", "single", "resque-scheduler issue 298, redlock-rb issue 27"},
	{"other-name", "otherName", "single", "alcor pull request 308"},
	{"permits-stay", "permitsStay", "single", "opik pull request 730, Redisson issue 6302"},
	{"raw-owner", "rawOwner", "single", "laravel/framework issue 36337"},
	{"small-pool", "smallPool", "single", "lua-resty-session issue 185"},
}

// causeOf extracts the checker and cause from verify's reason, such as "exclusion: double-grant"; empty if there is
// none.
func causeOf(said string) string {
	parts := strings.Split(said, ": ")
	if strings.Contains(parts[0], " ") { // topology, lock and scenario
		parts = parts[1:]
	}
	if len(parts) < 2 || strings.Contains(parts[0]+parts[1], " ") {
		return ""
	}
	return parts[0] + ": " + parts[1]
}

// StrangersFile has the answers from the first run of each stranger.
const StrangersFile = "testdata/strangers.jsonl"

// StrangerTable sums up the first runs, with a row for each stranger that was missed by explore or the scenarios.
func StrangerTable(results []*Mutant) string {
	var b strings.Builder
	var explored, strained, together, done, both int
	b.WriteString(Line(answered(results)...) + "\n")
	fmt.Fprintln(&b, "| lock | report | explore | scenarios |\n|---|---|---|---|")
	for _, r := range results {
		report := ""
		for _, s := range Strangers {
			if s.Name == r.Lock {
				report = s.Report
			}
		}
		said := func(a *Answer) string {
			if a == nil {
				return "not asked yet"
			}
			return strings.TrimSuffix(a.Outcome+", "+cmp.Or(causeOf(a.How), "-"), ", -")
		}
		if r.Explore.Noticed() && r.Scenarios.Noticed() {
			both++
		} else {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Lock, report, said(r.Explore), said(r.Scenarios))
		}
		if r.Explore.Noticed() {
			explored++
		}
		if r.Scenarios != nil {
			done++
		}
		if r.Scenarios.Noticed() {
			strained++
		}
		if r.Noticed() {
			together++
		}
	}
	fmt.Fprintf(&b, "\nNoticed in the first run: %d of %d by explore, %d of %d by the scenarios, %d of %d together, "+
		"%d by both.\n", explored, len(Strangers), strained, done, together, len(Strangers), both)
	return b.String()
}
