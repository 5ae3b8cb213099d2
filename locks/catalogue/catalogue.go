// Package catalogue has the locks under test. Correct locks and libraries (lib_*.go) have a file each. Broken locks
// (broken_*.go) are grouped by their mistake.
package catalogue

import (
	"strings"
	"time"

	"hammerlock/locks"
)

// All lists the locks: correct ones, then libraries, then broken ones. Libraries with many dependencies are missing
// here: known.Locks has them.
var All = []locks.Spec{
	lease, watch, watchdog, leader, reentrant, redisson, fair, spin, fenced, fencedClock, handoff, handoffCohort, multi,
	redissonMulti, wait, waitOne, ifeq, once,
	readWrite, redissonRW, redissonPermits,
	redlock, redlockSerial, redlockExtend, redlockMulti, local, incr, optimistic,
	libRedsync, libRedislock,
	none, bit, setnx, setnxExpire, expireSeconds, timestamp, timestampDel, plainDel, getDel, watchLax, watchUnheard,
	blindWatchdog, watchdogByName, renewRecreates, lateBelief, replyValidity, weakToken, localReentry, fenceAfter,
	halfQuorum, noElapsed, keepsMinority, waitAll, libRedislockToken, libRedsyncSetNX,
	sharedHandle, clearedTTL, mutexKept, mutexEvicted, extendOverwrites, reentryRetakes, subscribeLate, deafToExpiry,
	deadInLine, retriedSetNX, silentRelease, floatQuorum, reachedQuorum, renewalDies, stopAfterRelease, extendAdds,
	tokenTwice, reaper, clockDel, zsetRank, setnxHeal,
	keptToken, wakesItself, ownAge, roundedQuorum, fixedQuorum,
	turnKept, trustsReplies, stopByMessage, refusalKept, listenerKept,
	redissonSemaphore, upgradeDrops, permitTwice, permitKept, permitAge, readersFirst, readersExpiry,
	multiKept, multiDel, multiWaits,
	leaderSets, leaderForGood, leaderEarly, onceReleased,
}

// Find returns the Spec with this name; false = the name is unknown.
func Find(name string) (locks.Spec, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return locks.Spec{}, false
}

// Assumptions that several correct locks make.
const (
	keepsKeys   = "the server keeps its keys and its clock for the lease; "
	keepsQuorum = "no majority forgets its keys or steps its clock within a lease; "
	doneInTime  = "the holder is done before Until"
	heedsLost   = "the holder heeds Lost"
)

// from returns the lease with its deadline, if err is nil. The lease is assumed to begin at the time call, when the
// request was sent.
func from(l locks.Lease, call time.Time, ttl time.Duration, err error) (locks.Lease, error) {
	if err == nil {
		l.Until = locks.Until(call, ttl)
	}
	return l, err
}

// sibling names a second key of a lock, such as its queue. The name contains the lock's key, and a cluster keeps
// both keys in one slot.
func sibling(name, key string) string {
	if strings.Contains(key, "{") {
		return key + ":" + name
	}
	return "{" + key + "}:" + name
}

// redissonSibling names a second key or a channel of a lock as Redisson does; within is a prefix, which may be
// empty.
func redissonSibling(within, name, key string) string {
	if strings.Contains(key, "{") {
		return within + name + ":" + key
	}
	return within + name + ":{" + key + "}"
}
