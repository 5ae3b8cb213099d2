package main

import (
	"fmt"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// row has the measurements of a choice.
type row struct {
	choice
	missing     string // what is not installed; empty = nothing
	loads       []*results.Run
	dead, again time.Duration
	scenarios   []string
}

const head = `# What to choose

    make compare       # measures all again and writes this page; ten minutes

One run of each lock with its servers, side by side on one machine: two cores that servers and workers share, everything
on loopback, %s a load. Read it for orders of size and for what is different in kind.

## In short

* **You have a database, and the lock guards rows in it.** Take the lock there: a lease row, whose fence the guarded
  UPDATE compares. It is the only choice here in which a late holder cannot do harm.
* **Work is done twice now and then, and that is cheap.** Redis on one server or behind sentinels. Nothing waits for a
  disk there, and a failover may forget a grant ([VERIFY.md](VERIFY.md)).
* **Nothing may be done twice, and there is no database.** etcd or ZooKeeper, three servers, and a store that compares
  the fence. Without the fence they are no safer than Redis against a holder that is paused or cut off.
* **The lock must not pass on while its holder lives.** A lock of a connection (pg-advisory, GET_LOCK) has no lease. A
  holder that hangs blocks all others, and a connection that breaks gives the lock away at once.
* **Many want one key at once.** Let the server keep the queue, as GET_LOCK and pg-advisory do. Where waiters poll, as
  for a lease, 256 of them take most of what the server can do. [LOCKS.md](LOCKS.md#waiting) has locks on Redis that
  queue.
* **Redlock** survives servers that forget, as long as a majority remembers; it draws no fence.

`

// The marks separate the generated tables from the text around them.
const (
	loadTable = "<!-- generated: load -->\n| lock | on | 1 worker | 16, own keys | 64, own keys | 32, " +
		"one key | p99 | Jain | 256, one key | p99 | Jain |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
	killTable = "<!-- generated: kills -->\n| lock | on | granted again | healthy | fence | assumes |\n" +
		"|---|---|---|---|---|---|\n"
	scenarioTable = "<!-- generated: scenarios -->\n| lock | on | scenarios |\n|---|---|---|\n"
	end           = "<!-- end -->\n"
)

func document(rows []row, each time.Duration, kills int) string {
	var b strings.Builder
	fmt.Fprintf(&b, head, human.Duration(each))
	b.WriteString("## Load\n\nVisits a second (acquire, load and store a counter, release). " +
		"p99 is the wait of a worker picked at a random moment; a dash:\ntoo few visits to say. " +
		"Jain is 1 if all workers get as much. Without a queue in the server workers ask again after about a\n" +
		"millisecond (--backoff).\n\n" + loadTable)
	for _, r := range rows {
		if r.missing != "" {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |", r.lock, r.topology)
		for i, run := range r.loads {
			b.WriteString(cells(i, run))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, end+"\n## When the server that serves the lock is killed\n\nMedians of %d kills: "+
		"until a free lock is granted again, and until all servers are healthy with the killed one back.\n"+
		"One server alone is started again at once. A lock whose holder died waits for its lease besides.\n\n"+
		killTable, kills)
	for _, r := range rows {
		if r.missing != "" {
			fmt.Fprintf(&b, "| `%s` | `%s` | not measured: %s | | | |\n", r.lock, r.topology, r.missing)
			continue
		}
		topology, lock := find(r.choice)
		granted := took(r.dead)
		if topology.Nodes == 1 { // the killed server was restarted immediately
			granted = fmt.Sprintf("as long as it is down (here %s)", granted)
		}
		fence := "no"
		if lock.Claims.Fences {
			fence = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s |\n", r.lock, r.topology, granted, took(r.again), fence,
			lock.Assumes)
	}
	b.WriteString(end + "\n## Scenarios\n\nSome scenarios of [VERIFY.md](VERIFY.md), for each lock those that apply. " +
		"In bold: failed. With a question mark: it showed\ntoo little, or the machine paused.\n\n" + scenarioTable)
	for _, r := range rows {
		if r.missing == "" {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.lock, r.topology, strings.Join(r.scenarios, ", "))
		}
	}
	b.WriteString(end + tail)
	return b.String()
}

// took formats a measured time; 0 = "-".
func took(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return human.Duration(d)
}

// cells returns the cells of a row for one load.
func cells(shape int, run *results.Run) string {
	cells := "-"
	if run != nil {
		cells = human.Count(int64(run.Throughput + 0.5))
	}
	if shape < hot {
		return " " + cells + " |"
	}
	if run == nil {
		return " - | - | - |"
	}
	wait := "-"
	if p := run.Waiting.RandomWaiter.P99; p != nil {
		wait = human.Duration(time.Duration(*p))
	}
	return fmt.Sprintf(" %s | %s | %.2f |", cells, wait, run.Fairness.Jain)
}

const tail = `
## Not tried

Machines and networks between servers; TLS; disks other than this one's; MySQL proper, and databases that replicate;
Consul; more than three nodes; locks that are held for long beside others.
`
