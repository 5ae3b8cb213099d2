package glossary

import (
	"slices"
	"strings"

	"hammerlock/history"
)

// Cause is a reason why a verdict fails, for example that a lock was granted twice.
type Cause struct {
	Name, Means string
	Remedy      string // what the author of the lock can do, and files with an example
}

// AllCauses lists the causes that failed verdicts can have.
var AllCauses = []Cause{
	{history.DoubleGrant,
		"The lock was granted while another worker certainly had it, and nothing explains it but the lock itself.",
		"Decide in one command or script of the server who is granted the lock, as SET key token NX PX does. " +
			"See locks/catalogue/lease.go."},
	{history.ForeignRelease, "A worker released a lock that was not its own (any more).",
		"Release only what was granted, give every grant a token of its own, and compare the token and delete in " +
			"one script. See locks/catalogue/lease.go."},
	{history.ServiceLoss,
		"The servers forgot a grant because of a fault, for example in a failover. " +
			"No client of this lock could have known.",
		"No client can prevent it with one server: take a majority of independent servers, " +
			"or let the store refuse older fencing tokens. See locks/catalogue/redlock.go, locks/catalogue/fenced.go."},
	{history.SilentReacquire,
		"An extension or a re-entry of a lock that was over succeeded, instead of saying that it is lost.",
		"Extend and re-enter by a script that finds the own token still there, and report the lock as lost " +
			"otherwise. See locks/catalogue/lease.go."},
	{history.FalseExtension,
		"An extension was answered with success, but another was granted the lock when the lease before it was over.",
		"Report an extension as successful only if the server says that it has moved the end of the own lease: " +
			"an aborted transaction, or a reply of 0, has not. See locks/catalogue/lease.go, " +
			"locks/catalogue/watch.go."},
	{history.OverClaim, "The lock told its holder a later end of the lease than the servers had promised.",
		"Count the end of the lease from before the request was sent, and never from its answer. " +
			"See locks/catalogue/lease.go."},
	{history.RenewalFailure,
		"A lock that renews its lease let it run out while its holder lived, and nothing excuses that.",
		"Renew at a third of the lease, try again after an error, and tell the holder when the last acknowledged " +
			"renewal runs out. See locks/catalogue/watchdog.go."},
	{history.PrematureLoss,
		"A holder was told that it had lost the lock before its lease was over, and nothing had happened to it.",
		"Report a loss only when a server has said so or the lease is over: an error of one renewal is neither. " +
			"See locks/catalogue/watchdog.go."},
	{history.Overrun,
		"A holder stored when it had the lock no more: its lease was over, or it had released. The lock is right; " +
			"its user must heed the deadline or use a fence.",
		"Let the holder stop at its deadline, or let the store refuse older fencing tokens. " +
			"See locks/catalogue/fenced.go."},
	{history.Phantom,
		"What was refused took effect: its token, or a key that only it can have made, was found in the servers.",
		"Report a refusal only if the try certainly had no effect; undo a grant that is given up before reporting it " +
			"as refused. See locks/catalogue/redlock.go, locks/outcome.go."},
	{history.PartKept,
		"A try for several keys was refused, and took some of them: their token was found in the servers.",
		"Take all keys in one script, or give back those that a try has before reporting it as refused. " +
			"See locks/catalogue/multi.go."},
	{history.Exclusion, "A page view was lost because two workers were inside at once.",
		"Mend first what the check exclusion names. If that is an overrun, let the counter compare fencing tokens. " +
			"See locks/catalogue/lease.go, locks/catalogue/fenced.go."},
	{history.ChangedRead, "A reader loaded a page when it came and before it went, and a writer had stored meanwhile.",
		"Count readers and writers by one script, which grants no writer while a reader has a lease. " +
			"See locks/catalogue/read_write.go."},
	{history.EarlyRead, "A visit stored a number that it had read before it was granted the lock, or elsewhere.",
		"Read after the grant what you write before the release, and keep no number from the visit before. " +
			"See workload/worker.go."},
	{history.StaleRead, "A load did not see a store that had been acknowledged before.",
		"Read the counter from the server that acknowledges its stores, and from no replica or cache. " +
			"See workload/counter_redis.go."},
	{history.StoreLoss, "The counter's own server lost a store.",
		"Keep the counter where an acknowledged store survives the failure: the lock cannot help. " +
			"See workload/counter_sqlite.go."},
	{history.ZombieWrite, "A store arrived after its holder had given up waiting for its answer.",
		"Send a fencing token with every store, and refuse older ones: a request that was given up may still arrive. " +
			"See locks/catalogue/fenced.go, workload/counter_redis.go."},
	{history.Overwritten, "The counter went back to an older value.",
		"Let the store compare a fencing token, or the value that was read, and write in one step. " +
			"See locks/catalogue/fenced.go, workload/counter_redis.go."},
	{history.LostUpdate, "A service counted fewer visits than it acknowledged.",
		"Add in one atomic step, or hold one lock, which all instances share, from the read to the write. " +
			"See locks/catalogue/lease.go."},
	{history.Duplicate,
		"The counter counted more than the visits that can have reached it, or told two visits the same number.",
		"Add once for each visit and never send an addition again on a missing answer; answer with the number that " +
			"this addition returned. See workload/baseline.go."},
	{history.Corrupt, "The counter has a number that no visit wrote.",
		"Let only visits write the key of the counter. See workload/counter_redis.go."},
	{history.StaleStore, "A counter that checks fences took a store with an older one.",
		"Let the counter compare the token and write in one step, and refuse every smaller one. " +
			"See workload/counter_redis.go."},
	{history.Repeated, "Two grants have the same fence.",
		"Draw the token in the script that grants the lock, from a number that only grows. " +
			"See locks/catalogue/fenced.go."},
	{history.Regressed, "A later grant has a smaller fence.",
		"Draw the token in the script that grants the lock, from a number that only grows; " +
			"keep that number for as long as the counter. See locks/catalogue/fenced.go."},
	{history.NoToken, "A grant of a lock that claims fences has none.",
		"Draw a fencing token with every grant, in the script that grants the lock. See locks/catalogue/fenced.go."},
	{history.FalseRelease, "A release was answered with success although the hold was over.",
		"Answer a release with success only if the script has found and deleted the own token. " +
			"See locks/catalogue/lease.go."},
	{history.DoubleRelease, "The same hold was released with success twice.",
		"Delete the token in the script that compares it, and answer by what it has deleted. " +
			"See locks/catalogue/lease.go."},
	{history.FalseRefusal,
		"A release was told \"not yours\", and a later one of the same hold succeeded; " +
			"or an owner was refused within its lease, and nothing was broken.",
		"Refuse an owner only if the token in the server is not its own: an error or a missing answer does not say " +
			"that. See locks/catalogue/lease.go, locks/outcome.go."},
	{history.EqualTokens, "Two holds of a page by different workers had the same token.",
		"Draw a token of 16 random bytes for every hold, from the system's source. See locks/catalogue/lease.go."},
	{history.Unanswered,
		"A call to the lock was answered an error, although nothing was or had been broken; " +
			"or all tries of a process were for longer than their bound, although servers answered.",
		"Handle this error, or return the error that says what is certain: busy, lost, or not supported. " +
			"After READONLY or a broken connection ask again which server is the primary. See locks/outcome.go."},
	{history.HungCall,
		"A call of the lock did not return, although servers answered for longer than its bound, " +
			"or its context had ended.",
		"Give every request a deadline, and wait for nothing that may have ended already: select on the context, " +
			"too. See locks/catalogue/watchdog.go."},
	{history.Deadlock, "A worker waited, no worker could have the lock, and it was never granted again.",
		"Set the end of the lease in the command that grants the lock, let no try that is refused move it, " +
			"and let waiters try again when it is over. A lock that keeps a mutex of its process locked says so " +
			"(Outlives, or the claim of a driver): then a process crashes. See locks/catalogue/lease.go."},
	{history.Stuck,
		"A worker waited, no worker could have the lock, and none was served for longer than the bound; " +
			"or a service whose programs were up answered no visit any more.",
		"Let a waiter try again no later than the lease of the holder ends, whatever message it waits for, and " +
			"bound the pause between its tries. See locks/catalogue/hub.go."},
	{history.Crossing,
		"Callers who wanted several keys each had some of them and waited for the others: " +
			"no worker held what it wanted for longer than the bound.",
		"Take keys in one order, the same for all callers, or give back what a try has before it waits. " +
			"See locks/catalogue/multi.go."},
	{history.Starved, "A writer waited for longer than a lease, and readers who had come later were granted the lock.",
		"Grant no new reader while a writer waits. See locks/catalogue/read_write.go."},
	{history.LostWakeup, "A waiter that sleeps until a message comes got none.",
		"Subscribe before the last try, and try again when the lease ends: a message may be lost. " +
			"See locks/catalogue/hub.go."},
	{history.Storm, "Waiters made the servers do more than ten times what polling with the backoff would have cost.",
		"Wait for a message, or poll with a jittered backoff that grows. See locks/catalogue/spin.go."},
	{history.Leak, "A key was left behind that never expires, or that had been released.",
		"Give every key an expiry in the command that writes it, and delete whatever a refused or released try " +
			"wrote. See locks/catalogue/lease.go."},
	{history.Leftover, "A key was left behind that has an expiry, of a lock that claims to clean up.",
		"Delete all keys of the lock in the script that releases it. See locks/catalogue/fair.go."},
	{history.TTLTooLong, "A key lives longer than the longest lease that was asked for.",
		"Set the expiry of every key to the lease that was asked for, in milliseconds. See locks/catalogue/lease.go."},
	{history.WrongCount, "A reentrant lock told a wrong number of holds.",
		"Keep the number of holds in the server, beside the owner, and change both in one script. " +
			"See locks/catalogue/reentrant.go."},
	{history.TokenChanged, "A reentrant lock gave its owner another token inside.",
		"Keep the token of the owner until its last hold is released. See locks/catalogue/reentrant.go."},
	{history.SelfRefusal, "A reentrant lock refused its own owner, or told it that a hold was lost that was its own.",
		"Compare the owner in the script before it refuses, and renew the lease with every re-entry. " +
			"See locks/catalogue/reentrant.go."},
	{history.RunTwice,
		"A job ran twice in one tick: the key of the tick was granted again before its lease was over.",
		"Give each tick a key of its own, with a lease that is longer than clocks differ, and do not delete the key " +
			"when the job is done. See locks/catalogue/once.go."},
	{history.LeftOut, "A job did not run in a tick: every worker was told that another one runs it.",
		"Put the tick into the key, so that the lease of one tick refuses nothing in the next. " +
			"See locks/catalogue/once.go."},
	{history.Backwards, "A service told a visit a smaller count than one that had ended before it began.",
		"Answer with the number that the addition itself returned, not with a later read. See workload/baseline.go."},
	{history.SkippedCount, "A service skipped a count that no visit can have been told.",
		"Answer with the number that the addition itself returned, and add once for each visit. " +
			"See workload/baseline.go."},
	{history.OutOfOrder,
		"A lock that claims first come, first served did not serve in that order; or a service told counts in an " +
			"order that no order of its visits explains.",
		"Keep a queue in the server, whose first waiter alone is granted the lock; a service answers with what its " +
			"addition returned. See locks/catalogue/fair.go."},
	{history.NotLinearizable, "A second, independent checker (porcupine) found no order that explains the history.",
		"Begin with the other checks that fail: they name times and holders. See locks/catalogue/lease.go."},
	{history.HarnessError, "Two checkers disagree. It is an error of the suite; please report it.",
		"Report the saved history: the verdicts of this run say nothing of the lock. See checker/METHOD.md."},
	{history.ClientLeak,
		"A process of the lock keeps goroutines, threads, connections, memory or a running timer for each call, " +
			"also when the call is long over.",
		"End with each hold and each try what was begun for it, on every path, also where it was refused or lost: " +
			"a goroutine selects on the end, a timer is stopped, a connection closed. " +
			"See locks/catalogue/watchdog.go."},
	{history.Panicked, "The lock panicked, or ended its process, or an exception in it was caught by no code; " +
		"or a program of a service ended.",
		"Mend the program at the line that the trace names; catch the errors of timers and background tasks. " +
			"See locks/outcome.go."},
}

// FindCause returns the cause with the name; the zero Cause if there is no such cause.
func FindCause(name string) (c Cause) {
	if i := slices.IndexFunc(AllCauses, func(c Cause) bool { return c.Name == name }); i >= 0 {
		c = AllCauses[i]
	}
	return c
}

// breaks returns the names of the claims that are broken by the cause. A claim is a promise of a lock.
func (c *Cause) breaks() (names []string) {
	for _, claim := range history.AllClaims {
		if slices.Contains(claim.Causes, c.Name) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// causes returns AllCauses as entries of the glossary.
func causes() (all []Word) {
	for _, c := range AllCauses {
		means := c.Means
		if broken := c.breaks(); len(broken) > 0 {
			means += " It breaks the claim " + strings.Join(broken, ", ") + "."
		}
		all = append(all, Word{c.Name, Causes, means + " What to do: " + c.Remedy})
	}
	return all
}
