// Package glossary explains the words that the suite uses in its output.
package glossary

import (
	"slices"
	"strings"
)

// Word is an entry of the glossary.
type Word struct {
	// Name is in lower case. Commas separate names that have the same entry.
	Name  string
	Group Group
	Means string // one or more sentences, in Markdown without links
}

// Group says in which kind of output a reader finds a word.
type Group string

// The groups, in the order in which a new reader meets them.
const (
	Visits   Group = "Visits and locks"
	Numbers  Group = "Numbers of bench"
	Texts    Group = "What else a run says"
	Changes  Group = "Comparisons and gates"
	Verdicts Group = "Verdicts"
	Causes   Group = "Causes of a failure"
)

// Groups lists all groups, in the order in which a new reader meets them.
var Groups = []Group{Visits, Numbers, Texts, Changes, Verdicts, Causes}

// All lists all entries, ordered by group.
var All = slices.Concat(words, causes())

var words = []Word{
	{"visit", Visits,
		"What a worker does again and again: take the page's lock, load the counter, stay, " +
			"store the counter plus one, release. A visit is acknowledged when its store was answered."},
	{"worker", Visits,
		"A client that visits pages, one visit after the other: w00, w01 and so on. `--workers` says how many."},
	{"page", Visits, "One counter with one lock. `--pages` makes several."},
	{"lock", Visits,
		"What lets one worker at a time into a visit of a page, and how: `--lock` names the algorithm, " +
			"`--list` says what each is."},
	{"hold, holds", Visits,
		"The time from a grant to the release, to the end of the lease or to the loss of the lock, " +
			"whichever comes first."},
	{"term, leader", Visits,
		"A hold in which the visit counts again and again, for several leases, as a leader does until it " +
			"is deposed or resigns."},
	{"lease", Visits, "How long a grant lasts if it is not extended (`--lease`)."},
	{"until", Visits,
		"The end of the lease as its holder counts it, from when it sent the request. " +
			"A holder that heeds it stores nothing later."},
	{"token", Visits,
		"A value that names one grant. A release compares it, so that no worker releases the lock of another."},
	{"fence", Visits,
		"A number that grows with every grant. A counter that refuses smaller ones is safe from " +
			"a holder that is late."},
	{"waiter", Visits, "A worker between its first try for a lock and the grant, or its giving up."},
	{"hand-off", Visits,
		"From the release of one worker to the grant of another. It is contended if the second one waited already."},
	{"watchdog", Visits, "A part of a lock that extends the lease in the background while the holder works."},
	{"site", Visits, "An independent server, or deployment, that a lock uses. Redlock needs a majority of several."},
	{"topology", Visits, "The servers of a run, and how they are joined."},
	{"scenario", Visits,
		"A load and what breaks meanwhile, a few seconds long. `verify` runs all that apply to the lock."},
	{"fault", Visits, "What is broken on purpose: a server is killed, a link is cut, a worker is stopped."},
	{"heal", Visits, "The end of a fault: what was broken is put right."},

	{"safety", Numbers, "The final count against the acknowledged visits. It is judged in every run of `bench`."},
	{"lost", Numbers, "Acknowledged page views that the final count lacks."},
	{"visits/s, throughput, counted/s", Numbers, "Acknowledged visits a second, of all workers together."},
	{"p50, p90, p99, p99.9", Numbers,
		"Percentiles: 50, 90, 99 or 99.9 in a hundred values are this or smaller. " +
			"`-` stands where the values are too few to say."},
	{"median", Numbers, "The middle value: half of the values are this or smaller."},
	{"max, mean", Numbers, "The greatest value, exactly, and the sum of all values by their number."},
	{"latency", Numbers, "How long a part of a visit takes. Each row of the table is a part."},
	{"count", Numbers, "How many values a row is made of."},
	{"acquire, acquire (winners)", Numbers,
		"The wait of those who got the lock, from the first try to the grant. Those who gave up are not in it."},
	{"with unfinished, acquire with unfinished", Numbers,
		"The same wait, with those who gave up or still waited at the end (Kaplan-Meier estimate)."},
	{"random waiter, a random waiter's wait", Numbers,
		"The wait of a worker picked at a random moment. Long waits count more, for more moments fall into them."},
	{"response, response (from due), response p50", Numbers,
		"From when a visit was due by the schedule to its end. A stall counts although no worker was free to notice " +
			"it (coordinated omission)."},
	{"response with unfinished", Numbers,
		"The same time, with the visits that gave up or had not ended (Kaplan-Meier estimate)."},
	{"try, one try", Numbers, "One request for the lock, granted or not."},
	{"one request", Numbers, "One request to a service that does its own locking, answered or not."},
	{"release", Numbers, "How long the call that gives the lock back takes."},
	{"jain, fairness", Numbers,
		"Jain's index of the visits of all workers: 1 if all had the same number, 1/n if one of n had all."},
	{"starving", Numbers, "Workers that had less than a tenth of their fair share of the visits."},
	{"worst worker, worst", Numbers, "The worker with the fewest visits; of several, the one with the longest wait."},
	{"longest", Numbers, "The longest wait of that worker, also one that had no end."},
	{"idle", Numbers, "Share of the time in which no worker had the lock and one waited for it."},
	{"a visit costs, cost a visit", Numbers,
		"What an acknowledged visit took on average: round trips, commands, CPU time of the servers."},
	{"trips", Numbers, "Round trips of the lock's client to its servers, a visit."},
	{"commands", Numbers,
		"Commands that the lock's servers carried out, a visit, those inside scripts and of replication included."},
	{"server cpu", Numbers, "CPU time of the lock's servers, a visit."},
	{"generator, ok, suspect, saturated, disturbed", Numbers,
		"Whether the load generator was fast enough for the latencies to be trusted. OK: the latencies are those of " +
			"the lock. SUSPECT: compare them, but do not quote them. SATURATED: they are those of this machine, " +
			"which the suite itself has used up. DISTURBED: other programs used a quarter of the cores or more, " +
			"and half of all were busy."},
	{"closed loop", Numbers,
		"A worker begins its next visit when it is done with the last. With `--rate` the loop is open: " +
			"visits are due by a schedule that knows nothing of the workers."},
	{"unavailable, outage", Numbers,
		"Time in which a worker had asked for a page's lock and no living worker held it, until the next grant. " +
			"The page is not served. Less than 100 ms, or ten of the pauses between two tries, is a hand-off."},
	{"n", Numbers, "In a table of failovers: how often the fault was injected, each time into servers that were " +
		"just started and whole."},
	{"settings", Numbers,
		"In a table of failovers: what was set otherwise than by default, for the servers (`--aof`, " +
			"`--min-replicas`, `--profile`) or for this row."},
	{"lost holds", Numbers,
		"Holds of locks that renew or signal, which ended under a living holder: another was granted the lock, " +
			"or an answer or a signal says that it is lost."},
	{"told p50", Numbers,
		"How long after the loss the holder heard of it, by a signal of the lock or an extension that failed."},
	{"never told", Numbers, "Lost holds whose holders heard nothing before they gave the lock back."},
	{"went on", Numbers, "The longest time in which a holder that was never told went on after the loss."},
	{"servers back p50", Numbers,
		"From the injection until a server that can grant has answered the client: " +
			"the recovery without a lease not given back."},
	{"a page p50", Numbers,
		"For how long the page was unavailable that was so for longest: " +
			"less than the recovery where pages took turns."},
	{"in flight", Numbers, "How many holds there were when the fault was injected, on average."},
	{"lost a grant", Numbers,
		"After how many of the injections a lock was granted that was another's by an earlier grant, " +
			"before its lease was over; with a 95 % interval (Clopper and Pearson), or the bound if there was none."},
	{"two holders", Numbers, "After how many of the injections two workers believed in one lock at a time."},
	{"came back", Numbers,
		"After how many of the injections a lock was held, by the servers' answers, that had been given back, " +
			"as they had acknowledged."},
	{"recovery, recovery p50", Numbers,
		"From the injection of a fault to the end of the outage that began while it was in force; without a fault, " +
			"from the first ask. Its parts: detection, election, reconnecting, and a lease not given back, " +
			"in which servers answer that the lock is held."},
	{"dead time", Numbers, "Time in which a worker waited for a page and none believed to hold it."},

	{"visits", Texts,
		"What became of the visits that were due within the measurement. Counted: the store was acknowledged. " +
			"Timed out: it gave up waiting for the lock. Failed: certainly not counted, for another reason. Unknown: " +
			"perhaps counted. Skipped: it gave up before a worker was free."},
	{"counted", Texts, "Visits whose store was acknowledged."},
	{"due", Texts, "Visits that were to begin by the schedule. In an open loop: due = begun + skipped + unfinished."},
	{"timed out", Texts, "A visit that gave up waiting for the lock (`--patience`)."},
	{"failed", Texts, "A visit that was certainly not counted, for another reason than that it gave up waiting."},
	{"unknown", Texts, "What may have happened or not: the answer is missing."},
	{"skipped", Texts, "A visit of an open loop that gave up before a worker was free."},
	{"woken", Texts,
		"What made those try who got the lock: at-once is the first try of a visit, poll the end of a backoff, " +
			"signal a message of the lock, lease-end the end of another's lease."},
	{"phase, from, for, load", Texts,
		"A part of a run with a load of its own, when it begins, how long it lasts, and what its load is."},
	{"driver", Texts, "A program of its own that has the lock and speaks JSON lines with the suite (docs/DRIVERS.md)."},
	{"agents", Texts, "Programs that run the workers, on this machine or on others, and how well their clocks agree."},
	{"errors", Texts,
		"Operations that did not go well, by kind, outcome and reason. A refusal is no error: the lock is held."},
	{"quorum", Texts,
		"A majority of a lock's sites. A try without it is a refusal if every site granted the lock or answered " +
			"\"busy\". The error `acquire failed quorum` counts tries in which a site did not answer."},
	{"note", Texts, "What to keep in mind about every number of the run."},
	{"interactive", Texts,
		"The run was changed by key while it went on. Its history names each change; gates decide nothing."},
	{"partial", Texts, "The run ended early. What was measured until then stands."},
	{"history", Texts,
		"The file that has every operation of a run of `verify`. `verify check` judges it again, without Redis."},
	{"repeat", Texts, "The command that carries out the run again, with its seed."},

	{"a, b", Changes,
		"The two sides of a comparison. In `ab`, A' has the settings of A: what A' shows against A is noise."},
	{"change, median of pairs", Changes,
		"By how much a side's median is greater or smaller than that of the first side; in `ab` the median of what " +
			"the pairs say, `~` where the medians beside it say the opposite."},
	{"better, worse", Changes,
		"A change that is more than noise, in the direction that is good for this number, or bad."},
	{"~", Changes, "A change that is within the noise: it says nothing."},
	{"interval, of the change", Changes,
		"Where the true change lies, with 95 % confidence for all rows at once. If it has 0 %, " +
			"there may be no change."},
	{"noise floor, a against a", Changes,
		"The change that two series of the same thing show. What is smaller is no difference."},
	{"p", Changes, "How often chance alone would show such a difference (Mann-Whitney U test). Small is clear."},
	{"gate", Changes, "A condition on a number: what does not meet it makes the exit code 5."},
	{"no data", Changes, "The runs have no value for this number."},
	{"not reached", Changes, "Another gate ended the run before this one could be checked."},
	{"underpowered", Changes,
		"Too little was measured to say whether a gate holds. It is neither a pass nor a failure."},

	{"verdict", Verdicts,
		"What was found of a lock, or of one property of it: pass, fail, inconclusive or not judged."},
	{"property", Verdicts, "What a check asks of a lock, such as exclusion."},
	{"pass", Verdicts, "Enough was tried, and no violation was found."},
	{"fail", Verdicts, "A violation is proved. The operations that prove it are shown."},
	{"inconclusive", Verdicts,
		"Neither: too little was tried, an answer is missing, a server failed without a planned fault, " +
			"or the machine paused. It is never a pass."},
	{"not judged", Verdicts, "The lock does not claim this property."},
	{"what to do", Verdicts,
		"What mends the cause of a failure, and where a right lock, or the suite's own counter, does so."},
	{"not run", Verdicts,
		"The scenario does not apply to this lock here, or there was no time for it. The reason stands beside it."},
	{"proved", Verdicts, "When the last operation was over that proves the first violation."},
	{"exposed", Verdicts, "Occasions on which the property could have failed."},
	{"violations", Verdicts, "Occasions on which it did."},
	{"what was found", Verdicts, "The finding in a sentence, near misses included."},
	{"overlap", Verdicts, "Two workers believed to hold the same page at the same time."},
	{"expected, found", Verdicts,
		"What the entry of a lock expects of it, pass or a cause, and the cause or verdict that " +
			"came of it (--expect)."},
	{"under, result", Verdicts,
		"The fault or scenario that has to show a cause, and whether it was found: as expected, NOT AS EXPECTED, " +
			"or undecided (--expect)."},
	{"took", Verdicts, "How long the runs of a row took, with the start of the servers, in seconds (--expect)."},
	{"95 % bound", Verdicts,
		"The greatest share of violations that this number of holds without one leaves possible, " +
			"with 95 % confidence."},
	{"detected", Verdicts, "How long after the start the first violation was proved."},
	{"service", Verdicts, "The servers, in contrast to the lock's client and its user."},
	{"unplanned", Verdicts,
		"Something that no fault had asked for: a server ended or took another role, or the machine paused. " +
			"What it explains is excused."},
	{"gap", Verdicts, "A time in which a process was paused: nothing of it ran."},
	{"slack", Verdicts, "How far the clocks of two processes may differ. What it could hide proves nothing."},
	{"told, notice delay", Verdicts,
		"How long after a hold was lost its living holder heard of it, by a signal of the lock or an extension that " +
			"failed; never, if it heard nothing before its release. A hold is lost from when another worker was " +
			"granted the lock, a planned fault made the servers forget it, or its lease was over. " +
			"Time in which the holder's process was paused is left out."},
}

// Names returns the names that share the entry.
func (w *Word) Names() []string { return strings.Split(w.Name, ", ") }

// Find returns the entries with the name. There can be two, if the name is both a term and a cause.
func Find(name string) (all []Word) {
	for _, w := range All {
		if slices.Contains(w.Names(), name) {
			all = append(all, w)
		}
	}
	return all
}
