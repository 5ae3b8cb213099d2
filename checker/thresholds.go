package checker

import (
	"cmp"
	"time"
)

// patience is the time for which the lock may be idle without any explanation, because machines may be busy. A history
// can set another time.
const patience = time.Second

// aMoment is a silence that is negligible compared with the patience.
const aMoment = patience / 20

// collisions is the largest number of times in a row that workers may fail because they try at the same time. Then
// each gets some of several sites, and none gets a majority.
const collisions = 4

// noticed is the longest time between the last moment at which a server was known to be well and the server's failure.
const noticed = time.Second

// mostFailover is the longest time for which a former primary may be unaware of a promotion. With sentinels, 1.9 s were
// seen on a busy machine.
const mostFailover = 10 * time.Second

// unknownRecovery is used for deployments that do not say how long they need to recover.
const unknownRecovery = 5 * time.Second

// patientCall is the shortest time after which a library gives up waiting for a site. The request may then take effect
// without the library's knowledge.
const patientCall = 20 * time.Millisecond

// leastPatience is shorter than the timeout of any client.
const leastPatience = 2 * time.Millisecond

// manyErrors is the smallest number of failed calls for which the lock is blamed.
const manyErrors = 20

// The lock is blamed in two cases. After more than fewUnheard releases in a row, all waiters slept for longer than the
// bound; or more than someUnheard releases in a row were unheard. For each message that may have gone to a dead
// listener, unheardEach more are allowed.
const fewUnheard, someUnheard, unheardEach = 3, 20, 2

// fewKeys is the number of keys up to which servedAgain searches.
const fewKeys = 64

// Margin is the shortest pause of a process that excuses a missed renewal: a watchdog should keep a third of the lease
// in reserve.
func Margin(ttl time.Duration) time.Duration { return ttl / 3 }

// Spare is the longest pause that alone does not make a holder late. It is used if only the total length of the pauses
// is known. It is half of the lease time that remains after the visit. The other half is for delays before and after
// the pause, which a busy machine causes.
func Spare(ttl, hold time.Duration) time.Duration { return max(ttl-hold, 2) / 2 }

func (c *Case) recovery() time.Duration { return cmp.Or(c.Bounds.Recovery, unknownRecovery) }
