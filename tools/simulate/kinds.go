package main

import (
	"slices"

	"hammerlock/history"
)

// mistake is a thing that a lock, its holders or the counter do wrong. A right lock has the value none.
type mistake int

const (
	none                  mistake = iota
	plainDelete                   // a release deletes the key without a check of its owner
	checkThenDelete               // a release checks the owner, and deletes in a second step
	checkThenSet                  // a try checks whether the lock is free, and takes it in a second step
	overwrites                    // a try takes the lock from its holder
	shortLease                    // a server keeps a third of the lease
	liesOnRelease                 // a release of a hold that is over is answered with success
	extendRecreates               // an extension sets a key that is gone
	extendsAnything               // an extension extends any holder's key
	fromReply                     // a deadline is counted from the answer, not from the call
	endless                       // a holder gets no deadline
	hopes                         // an extension without an answer counts as success
	refusesOwner                  // an owner's release is refused, as if the hold were lost
	busyOwner                     // an owner's extension is refused as if another holder had the lock
	releasesTwice                 // a second release is answered with success
	heedless                      // a holder stores after its deadline
	forgetfulCounter              // the counter loses an acknowledged store
	staleCounter                  // the counter returns an old value
	stopsRenewing                 // a watchdog silently stops renewing
	zombieWatchdog                // a watchdog renews after the release
	smallQuorum                   // half of the sites are enough for a grant
	extendsOne                    // one site is enough for an extension
	countsSilence                 // an unanswered request counts as a grant
	readersIgnoreWriter           // a reader is granted the lock beside a writer
	writerIgnoresReaders          // a writer is granted the lock beside readers
	upgradeIgnoresReaders         // a reader becomes the writer beside other readers
	readerFreesAll                // a reader's release frees all readers
	onePermitMore                 // there is one permit too many
	permitsTwice                  // a permit is given back twice
	weightIgnored                 // a request for several permits counts as one
	innerFrees                    // an inner release frees the whole hold
	wrongCount                    // a reported count is one too high
	refusesSelf                   // an owner's re-entry is refused
	newToken                      // a re-entry has another token
	noFence                       // a grant has no fencing token
	sameFence                     // two grants have the same fencing token
	localFence                    // each process draws its own fencing tokens
	unfencedStore                 // the counter accepts a store with an old fencing token
	barges                        // the first to ask after a release gets the lock
	newestFirst                   // the last waiter is served first
)

// kind is a kind of lock: its claims, and the mistakes that it can have.
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

// pair is a kind of lock with its mistake.
type pair struct {
	kind  *kind
	wrong mistake
}

// pairs lists all kinds, right or with each mistake.
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
