package matrix

import (
	"time"

	"hammerlock/faults"
)

type list = []string

// BuiltIn is what "verify matrix" runs, how, and what it must find. A cell without a rule expects what follows from the
// catalogues.
var BuiltIn = &Expectations{Set: set, Settings: settings, Rules: rules}

func expectFailure(reason string, causes ...string) expectation {
	return expectation{Want: mustFail, Causes: causes, Reason: reason}
}

func allowFailure(reason string) expectation { return expectation{Want: mayFail, Reason: reason} }

var set = []Pattern{
	// To a lock a process that dies is the same as a worker that dies, so one of the two faults is enough. No fault of
	// the lock's servers reaches a baseline that works without a lock.
	{Locks: list{right, "!optimistic", "!incr", "!rueidislock*"},
		Faults: list{faults.None, survived, "drop-reply:40", "!drop-reply", "!kill-process"}},
	{Locks: list{"optimistic", "incr"}, Topologies: list{"single"}, Faults: list{faults.None}},
	// This library gives back what it holds when it is closed, so only a whole process can die while it holds.
	{Locks: list{"rueidislock*"}, Faults: list{faults.None, survived, "drop-reply:40", "!drop-reply", "!crash-worker"}},
	{Locks: list{"lease", "redlock"}, Topologies: list{"single", "redlock"}, Faults: list{"kill-process"}},
	{Locks: list{wrong}, Topologies: list{"single", "redlock"},
		Faults: list{caught, "!pause-minority", "!pause-primary", "!partition", "!stop-process", "!flush"}},
	{Locks: list{"no-elapsed", "wait-all"}, Topologies: list{"redlock"}, Faults: list{"pause-minority@500ms"}},
	{Locks: list{"late-belief", "watchdog", "rueidislock-noloop"}, Topologies: list{"replica"},
		Faults: list{"partition:holder/nodes@granted"}, Processes: 2},
	{Locks: list{"blind-watchdog", "watchdog"}, Topologies: list{"single"}, Faults: list{"flush"}},
	{Locks: list{"float-quorum", "reached-quorum"}, Topologies: list{"redlock"}, Faults: list{"pause-minority"}},
	{Locks: list{"stop-after-release"}, Topologies: list{"replica"}, Faults: list{"partition"}},
	{Locks: list{"renew-recreates"}, Topologies: list{"single"}, Faults: list{"stop-process@granted"}, Processes: 2},
	// The classic failures of right locks.
	{Locks: list{"lease"}, Topologies: list{"replica", "sentinel", "cluster"}, Faults: list{"lost-grant"}},
	{Locks: list{"lease", "redlock"}, Topologies: list{"single", "redlock"}, Faults: list{"restart-empty", "flush", "evict"}},
	{Locks: list{"lease", "redlock"}, Topologies: list{"single", "sentinel", "redlock"}, Faults: list{"stall-worker", "stop-process"}},
	{Locks: list{"local"}, Topologies: list{"single"}, Faults: list{faults.None}, Processes: 2},
	{Locks: list{"lease"}, Topologies: list{"single"}, Faults: list{faults.None}, Processes: 2},
	// Fencing.
	{Locks: list{"fenced"}, Topologies: list{"single"}, Faults: list{"stall-worker", "restart-late"}},
	{Locks: list{"fenced"}, Topologies: list{"single"},
		Faults: list{faults.None, "stall-worker"}, Counters: list{"redis-fenced", "sqlite-fenced"}},
	{Locks: list{"fence-after"}, Topologies: list{"single"}, Faults: list{"stall-worker@between"}, Counters: list{"redis-fenced"}},
}

var settings = []setting{
	{Pattern{},
		conditions{Workers: 8, Keys: 1, TTL: time.Second, Hold: 2 * time.Millisecond, Think: 2 * time.Millisecond,
			Retry: 2 * time.Millisecond, Wait: 3 * time.Second, Duration: 2500 * time.Millisecond}},
	// Its error shows only with leases under one second.
	{Pattern{Locks: list{"expire-seconds"}},
		conditions{TTL: 700 * time.Millisecond}},
	// A failover must end before the lease does.
	{Pattern{Topologies: list{"sentinel", "cluster"}, Faults: list{"lost-grant"}},
		conditions{TTL: 4 * time.Second, Wait: 6 * time.Second, Duration: 5 * time.Second}},
	// A foreign release is a violation only while its victim still holds.
	{Pattern{Locks: list{wrong}, Faults: list{"stall-worker"}},
		conditions{Hold: 30 * time.Millisecond, Think: time.Millisecond}},
	// Many workers must see the deadline pass at the same time.
	{Pattern{Locks: list{"timestamp-del"}, Faults: list{"crash-worker"}},
		conditions{Workers: 32, Retry: time.Millisecond}},
	{Pattern{Locks: list{"watch-unheard"}},
		conditions{Extend: 3 * time.Second}},
	{Pattern{Locks: list{"local-reentry"}},
		conditions{Reenter: 1}},
	// A hold must last longer than a lease to be renewed.
	{Pattern{Locks: list{"watchdog-by-name"}, Faults: list{"stall-worker@between"}},
		conditions{Workers: 4, TTL: 400 * time.Millisecond, Hold: 600 * time.Millisecond, Wait: 6 * time.Second,
			Duration: 4 * time.Second}},
	{Pattern{Locks: list{"late-belief", "watchdog", "rueidislock-noloop"}, Faults: list{"partition:holder/nodes@granted"}},
		conditions{Workers: 4, TTL: 600 * time.Millisecond, Hold: 1500 * time.Millisecond, Wait: 6 * time.Second,
			Duration: 3 * time.Second}},
	// The holder must still hold when its process goes on, and nobody else may have its page by then.
	{Pattern{Locks: list{"renew-recreates"}, Faults: list{"stop-process@granted"}},
		conditions{Workers: 4, Keys: 8, TTL: 500 * time.Millisecond, Hold: 1500 * time.Millisecond,
			Wait: 8 * time.Second, Duration: 6 * time.Second}},
	{Pattern{Locks: list{"blind-watchdog", "watchdog"}, Faults: list{"flush"}},
		conditions{Workers: 4, Hold: 500 * time.Millisecond, Wait: 6 * time.Second, Duration: 4 * time.Second}},
	{Pattern{Locks: list{"wait-all"}, Faults: list{"pause-minority@500ms"}},
		conditions{Wait: 10 * time.Second, Duration: 9 * time.Second}},
	// Extended late, and entered again late.
	{Pattern{Locks: list{"extend-overwrites"}},
		conditions{Extend: time.Second}},
	{Pattern{Locks: list{"reentry-retakes"}},
		conditions{Reenter: 1, Keys: 64, TTL: 500 * time.Millisecond}},
	// It forgets all mutexes but sixteen.
	{Pattern{Locks: list{"mutex-evicted"}},
		conditions{Workers: 64, Keys: 24, Hold: 5 * time.Millisecond}},
	// All others must be asleep when a holder dies.
	{Pattern{Locks: list{"deaf-to-expiry"}},
		conditions{Workers: 3, TTL: 500 * time.Millisecond, Hold: 20 * time.Millisecond, Think: time.Millisecond, Wait: 8 * time.Second,
			Duration: 5 * time.Second}},
	// A lease must have been renewed before its holder dies.
	{Pattern{Locks: list{"extend-adds"}},
		conditions{Workers: 16, Keys: 6, TTL: 400 * time.Millisecond, Hold: 900 * time.Millisecond, Wait: 8 * time.Second, Duration: 6 * time.Second}},
	{Pattern{Locks: list{"reaper"}, Faults: list{faults.None}},
		conditions{TTL: 600 * time.Millisecond, Hold: 450 * time.Millisecond, Wait: 6 * time.Second, Duration: 4 * time.Second}},
	// With twelve workers some numbers are prefixes of others.
	{Pattern{Locks: list{"redislock-token"}},
		conditions{Workers: 12}},
	// Nobody else may take an expired lock before its holder extends it, so there are many pages.
	{Pattern{Locks: list{"redsync-setnx-extend"}},
		conditions{Keys: 100, TTL: 500 * time.Millisecond, Extend: 500 * time.Millisecond}},
	// Simultaneous tries split the votes; and five servers are more work for the machine.
	{Pattern{Locks: list{right}, Topologies: list{"redlock"}},
		conditions{Workers: 4, Think: 5 * time.Millisecond, Retry: 10 * time.Millisecond, Duration: 3500 * time.Millisecond}},
	// It takes time to fill the memory of five servers.
	{Pattern{Topologies: list{"redlock"}, Faults: list{"evict"}},
		conditions{TTL: 3 * time.Second, Wait: 6 * time.Second, Duration: 5 * time.Second}},
}

var rules = []rule{
	{Pattern{Locks: list{"local"}, Processes: 2},
		expectFailure("a mutex excludes nobody outside its process", "double-grant")},
	{Pattern{Locks: list{"lease", "fenced-clock"}, Faults: list{"lost-grant"}},
		expectFailure("replication is asynchronous, and the primary dies with the only copy of the grant", "service-loss")},
	{Pattern{Locks: list{"lease", "redlock"}, Topologies: list{"single", "redlock"},
		Faults: list{"restart-empty", "flush", "evict", "power-loss", "clock-jump", "clock-rate"}},
		expectFailure("the servers of a quorum do not keep the key for as long as the lease", "service-loss")},
	{Pattern{Locks: list{"lease", "redlock"}, Faults: list{"stall-worker", "stop-process"}},
		expectFailure("the holder went on after its lease; only fencing helps", "overrun")},
	{Pattern{Locks: list{"setnx", "setnx-expire"}, Faults: list{"crash-worker*"}},
		expectFailure("nothing ends the hold of a holder that died", "deadlock", "stuck", "leak")},
	{Pattern{Locks: list{"bit"}, Faults: list{"crash-worker"}},
		expectFailure("it never expires, but it is broken so soon that somebody always frees it", "double-grant")},
	{Pattern{Locks: list{"late-belief"}, Faults: list{"pause-primary", "partition"}},
		allowFailure("while the server answers nobody, nobody else gets what the holder wrongly believes in")},
	{Pattern{Locks: list{"late-belief"}, Faults: list{"partition:holder*"}},
		expectFailure("nobody acknowledged the extension that its holder goes by", "over-claim", "renewal-failure")},
	{Pattern{Locks: list{"rueidislock-noloop"}, Faults: list{"partition:holder*"}},
		expectFailure("it waits for an answer to its extension for half a lease longer than it has (docs/FINDINGS.md)", "renewal-failure")},
	{Pattern{Locks: list{"renew-recreates"}, Faults: list{"stop-process"}},
		allowFailure("it makes the key again only if nobody has the lock when its process goes on")},
	{Pattern{Locks: list{"renew-recreates"}, Faults: list{"stop-process@granted"}},
		expectFailure("the holder that goes on after its lease makes the key again, and is told that it had it all the time",
			"silent-reacquire")},
	{Pattern{Locks: list{"blind-watchdog"}, Faults: list{"stop-process"}},
		allowFailure("its holder gives up when its own lease is over; whether it renews before that is a race")},
	{Pattern{Locks: list{"blind-watchdog"}, Faults: list{"flush"}},
		expectFailure("it renews the lease of whoever was granted the lock after the server forgot its own", "silent-reacquire")},
	{Pattern{Locks: list{"watchdog"}, Topologies: list{"single"}, Faults: list{"flush"}},
		expectFailure("the server does not keep the key for as long as the lease", "service-loss")},
	{Pattern{Locks: list{"rueidislock*"}, Faults: list{"crash-worker"}},
		allowFailure("closing the library gives the lock back, so a worker that dies in the suite's process does not take it along")},
	{Pattern{Locks: list{"timestamp-del"}, Faults: list{"crash-worker"}},
		expectFailure("who sees the deadline passed deletes the key, also one that was set after that", "double-grant", "over-claim")},
	{Pattern{Locks: list{"watch-unheard"}, Faults: list{"stall-worker@between"}},
		expectFailure("its holder believes in an extension that EXEC did not carry out", "double-grant")},
	{Pattern{Locks: list{"local-reentry"}, Faults: list{"stall-worker"}},
		expectFailure("a re-entry is granted from a counter in the client when the lease is over", "silent-reacquire")},
	{Pattern{Locks: list{"no-elapsed"}, Topologies: list{"redlock"}, Faults: list{"pause-minority@500ms"}},
		expectFailure("the time that the hung sites took is not subtracted from the lease", "over-claim")},
	{Pattern{Locks: list{"wait-all"}, Topologies: list{"redlock"}, Faults: list{"pause-minority"}},
		allowFailure("it shows only if the sites hang for longer than anybody waits")},
	{Pattern{Locks: list{"wait-all"}, Topologies: list{"redlock"}, Faults: list{"pause-minority@500ms"}},
		expectFailure("two hung sites of five keep everybody from a lock that a quorum would grant", "stuck")},
	{Pattern{Locks: list{"fenced"}, Faults: list{"stall-worker"}},
		expectFailure("the holder went on after its lease", "overrun")},
	{Pattern{Locks: list{"fenced"}, Faults: list{"stall-worker"}, Counters: list{"*-fenced"}},
		expectation{Want: mustPass}},
	{Pattern{Locks: list{"fenced"}, Topologies: list{"single"}, Faults: list{"restart-late"}},
		expectFailure("the server that comes back empty counts its tokens from one again; a fence needs a server that keeps them", "fencing")},
	{Pattern{Locks: list{"fence-after"}, Faults: list{"stall-worker@between"}},
		expectFailure("who drew its token after its lease was over has a greater one than the lock's holder", "overrun")},
}
