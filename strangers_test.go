package hammerlock_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// strangers are wrong locks from public reports that were written when explore and the scenarios were done. Nothing was tuned for
// them before they were run for the first time. They are in no catalogue: see testdata/strangers.
var strangers = []struct{ name, variable, topology, report string }{
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

// strangersFile keeps what the first run of each said.
const strangersFile = "testdata/strangers.jsonl"

// TestStrangers asks the default verify about each of them, as TestMutantsOfLocks does about mutants: -mutants strangers.
func TestStrangers(t *testing.T) {
	if *mutantsOf != "strangers" {
		t.Skip("make mutants MUTANTS_OF=strangers")
	}
	var all []mutant
	for _, s := range strangers {
		file := filepath.Join("testdata/strangers", strings.ReplaceAll(s.name, "-", "_")+".go")
		text := sourceOf(t, file)
		all = append(all, mutant{mutation: mutation{file: file}, lock: s.name, variable: s.variable, topology: s.topology, name: s.name,
			source: digest(text), texts: map[string][]byte{file: text}})
	}
	m := &mutantRun{t: t, verify: filepath.Join(t.TempDir(), "verify"), file: strangersFile, known: readLines[mutantResult](t, strangersFile)}
	all = buildMutants(t, all, m.verify)
	m.settle(all, nil)
	m.ask(all, time.Now())
	t.Log("\n" + strangerTable(t))
}

// strangerTable says of each what the first run of explore and of the scenarios came to.
func strangerTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	var explored, strained, together, done int
	fmt.Fprintln(&b, "| lock | report | explore | scenarios |\n|---|---|---|---|")
	for _, r := range readLines[mutantResult](t, strangersFile) {
		report := ""
		for _, s := range strangers {
			if s.name == r.Lock {
				report = s.report
			}
		}
		said := func(a *asked) string {
			if a == nil {
				return "not asked yet"
			}
			return strings.TrimSuffix(a.Outcome+", "+cmp.Or(a.How, "-"), ", -")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Lock, report, said(r.Explore), said(r.Scenarios))
		if r.Explore.noticed() {
			explored++
		}
		if r.Scenarios != nil {
			done++
		}
		if r.Scenarios.noticed() {
			strained++
		}
		if r.noticed() {
			together++
		}
	}
	fmt.Fprintf(&b, "\nNoticed in the first run: %d of %d by explore, %d of %d by the scenarios, %d of %d together.\n", explored, len(strangers), strained, done, together, len(strangers))
	return b.String()
}
