package main

import (
	"slices"

	"hammerlock/history"
)

// mistake is what a lock, its holders or the counter do wrong; none is a right lock.
type mistake int

const (
	none                  mistake = iota
	plainDelete                   // a release deletes whatever is there
	checkThenDelete               // a release looks whose the lock is, and deletes whatever is there then
	checkThenSet                  // a try looks whether the lock is free, and takes it then
	overwrites                    // a try takes the lock from its holder
	shortLease                    // a server keeps a third of the lease
	liesOnRelease                 // a release of what is over is told that it succeeded
	extendRecreates               // an extension makes the lock again
	extendsAnything               // an extension lengthens whatever is there
	fromReply                     // a deadline is counted from the answer
	endless                       // a holder is told no deadline
	hopes                         // an extension without an answer is told to have succeeded
	refusesOwner                  // an owner is told that the lock is not its own
	busyOwner                     // an owner's extension is refused as if another held the lock
	releasesTwice                 // a second release is told that it succeeded
	heedless                      // a holder stores after its deadline
	forgetfulCounter              // the counter loses a store that it has acknowledged
	staleCounter                  // the counter tells a value that is no longer the last one
	stopsRenewing                 // a watchdog renews no more, and nobody is told
	zombieWatchdog                // a watchdog renews after the release
	smallQuorum                   // half of the sites are enough
	extendsOne                    // one site is enough for an extension
	countsSilence                 // a site that does not answer has granted
	readersIgnoreWriter           // a reader is granted beside a writer
	writerIgnoresReaders          // a writer is granted beside readers
	upgradeIgnoresReaders         // a reader becomes the writer beside others
	readerFreesAll                // a reader's release is that of all
	onePermitMore                 // a permit more than there are
	permitsTwice                  // a permit comes back twice
	weightIgnored                 // a request for many permits counts as one
	innerFrees                    // an inner release frees the lock
	wrongCount                    // a count is one too high
	refusesSelf                   // an owner is refused
	newToken                      // a re-entry has a token of its own
	noFence                       // a grant has no fencing token
	sameFence                     // two grants have the same one
	localFence                    // each process counts for itself
	unfencedStore                 // the counter takes a store with an old one
	barges                        // whoever comes when the lock is free has it
	newestFirst                   // who came last is served first
)

// kind is a kind of lock: what it claims, and what it can do wrong.
type kind struct {
	name     string
	sites    int
	claims   history.Claims
	mistakes []mistake
}

var kinds = []kind{
	{"lease", 1, lease(history.Claims{}),
		[]mistake{plainDelete, checkThenDelete, checkThenSet, overwrites, shortLease, liesOnRelease, extendRecreates,
			extendsAnything, fromReply, endless, hopes, refusesOwner, busyOwner, releasesTwice, heedless,
			forgetfulCounter,
			staleCounter}},
	{"watchdog", 1, lease(history.Claims{Renews: true}),
		[]mistake{plainDelete, checkThenSet, shortLease, extendRecreates, hopes, stopsRenewing, zombieWatchdog}},
	{"redlock-3", 3, lease(history.Claims{}),
		[]mistake{smallQuorum, extendsOne, countsSilence, plainDelete, fromReply}},
	{"redlock-5", 5, lease(history.Claims{}),
		[]mistake{smallQuorum, extendsOne, countsSilence, plainDelete, fromReply}},
	{"read-write", 1, lease(history.Claims{Readers: true, Upgrades: true}),
		[]mistake{readersIgnoreWriter, writerIgnoresReaders, upgradeIgnoresReaders,
			readerFreesAll, plainDelete}},
	{"semaphore", 1, lease(history.Claims{Permits: 3}),
		[]mistake{onePermitMore, permitsTwice, weightIgnored, extendRecreates, shortLease}},
	{"reentrant", 1, lease(history.Claims{Reentrant: true}),
		[]mistake{innerFrees, wrongCount, refusesSelf, newToken, plainDelete}},
	{"fenced", 1, lease(history.Claims{Fences: true}),
		[]mistake{noFence, sameFence, localFence, unfencedStore, overwrites}},
	{"fair", 1, lease(history.Claims{Ordered: true}), []mistake{barges, newestFirst, plainDelete, checkThenSet}},
	{"forever", 1, history.Claims{Excludes: true, Owned: true},
		[]mistake{plainDelete, checkThenSet, overwrites, liesOnRelease, releasesTwice}},
}

func lease(c history.Claims) history.Claims {
	c.Excludes, c.Expires, c.Owned = true, true, true
	return c
}

var mistakes = [newestFirst + 1]string{"-", "plain delete", "check then delete", "check then set", "overwrites",
	"short lease", "lies on release", "extend re-creates",
	"extends anything", "from reply", "endless", "hopes", "refuses owner", "busy owner", "releases twice", "heedless",
	"forgetful counter", "stale counter",
	"stops renewing", "zombie watchdog", "small quorum", "extends one", "counts silence", "readers ignore writer",
	"writer ignores readers",
	"upgrade ignores readers", "reader frees all", "one permit more", "permits twice", "weight ignored", "inner frees",
	"wrong count", "refuses self",
	"new token", "no fence", "same fence", "local fence", "unfenced store", "barges", "newest first"}

func (m mistake) String() string { return mistakes[m] }

// pair is a kind of lock with what it does wrong.
type pair struct {
	kind  *kind
	wrong mistake
}

// pairs lists all kinds, right or with each of their mistakes.
func pairs(right bool) (list []pair) {
	for i := range kinds {
		k := &kinds[i]
		wrong := k.mistakes
		if right {
			wrong = []mistake{none}
		}
		for _, m := range wrong {
			list = append(list, pair{k, m})
		}
	}
	return slices.Clip(list)
}
