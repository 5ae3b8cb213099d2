package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var handoff = locks.Spec{
	Name: "handoff",
	Doc: "lease with a queue and fencing tokens; the release itself grants the lock to the first in line, " +
		"and a message tells it so: " +
		"one round trip from hold to hold",
	Source: "Mellor-Crummey and Scott, Algorithms for Scalable Synchronization: queue locks, " +
		"here with the queue in the server; " +
		"redis.io, PUBSUB NUMSUB: the number of clients that listen",
	Sites:   locks.OneSite,
	Assumes: handoffAssumes,
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Fences: true, Ordered: true,
		Wakes: true, Begins: true},
	Listens: true,
	Open:    func(e locks.Env) (locks.Lock, error) { return newHandoff(e, 1), nil },
}

const handoffAssumes = keepsKeys + doneInTime +
	"; a server that takes over has a clock that is not ahead of the old one's, nor behind the last fencing token"

// The scripts have the keys lock, queue and fence. Each waiter has an entry in the queue, its line: "id|lease in
// ms|channel". Each wait has a new id. The waiter's process is subscribed to the channel. A waiter's line becomes the
// value of the lock's key when the lock is granted.

// handOn defines the Lua function serve(n, own, last). It grants the lock to the first waiter whose process listens
// to its channel, and returns true. It drops the lines of dead processes; a grant to one would block the lock for a
// lease. If the caller's line, own, comes first, it returns that line, and the caller takes the lock. It returns false
// if the queue is empty. A grant takes n fencing tokens. The argument last is the last token; nil = serve reads it.
//
// Listeners are counted before the message is sent. Otherwise a former primary without listeners would pass the message
// to its replicas, and listeners there would hear of a grant that was not made. For sharded channels in a cluster,
// "PUBLISH" is replaced by "SPUBLISH" and "NUMSUB" by "SHARDNUMSUB".
const handOn = drawByClock + `
local function serve(n, own, last)
	while true do
		local line = redis.call("LPOP", KEYS[2])
		if not line or line == own then return line end
		local ttl, channel = string.match(line, "^%w+|(%d+)|(.*)$")
		local now = clock()
		local fence = after(last or redis.call("GET", KEYS[3]), n, now)
		local message = string.format("%.0f|%.0f|%d|%s%s", fence, now, #KEYS[1], KEYS[1], line)
		if redis.call("PUBSUB", "NUMSUB", channel)[2] > 0 then
			redis.call("PUBLISH", channel, message)
			redis.call("SET", KEYS[1], line, "PX", ttl)
			keep(fence)
			return true
		end
	end
end
`

// The replies of askInLine.
const (
	inLine int64 = iota // the caller is in the queue: {0, rest of the holder's lease in ms, server's clock in µs}
	first               // the caller is granted the lock now: {1, fencing token}
	// before: the caller was granted the lock earlier, but its message is late or lost: {2, fencing token}.
	before
	dropped // the server has lost the caller's place: {3}
)

// askInLine has the keys lock, queue, fence and the arguments line, lease (ms), number of fencing tokens of a grant,
// and the mode: "try" (do not queue), "new" or "again". If the lock is free although workers wait, the last lease has
// expired. In the mode "new", the queue's TTL of an hour is renewed only if the queue was empty, or at random.
const askInLine = handOn + `
local left = redis.call("PTTL", KEYS[1])
if ARGV[4] == "again" then
	if redis.call("GET", KEYS[1]) == ARGV[1] then
		redis.call("PEXPIRE", KEYS[1], ARGV[2])
		return {2, draw(ARGV[3])}
	end
	if not redis.call("LPOS", KEYS[2], ARGV[1]) then return {3} end
end
if left == -2 then
	if serve(ARGV[3], ARGV[1]) ~= true then
		redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
		return {1, draw(ARGV[3])}
	end
	left = redis.call("PTTL", KEYS[1])
end
local now = clock()
if ARGV[4] ~= "new" or redis.call("RPUSH", KEYS[2], ARGV[1]) == 1 or now % 64 == 0 then
	redis.call("PEXPIRE", KEYS[2], 3600000)
end
return {0, left, now}`

// leaveLine has the keys lock, queue, fence and the arguments line, number of fencing tokens of a grant. It releases
// the lock or leaves the queue. It returns 1 if the caller held the lock.
const leaveLine = handOn + `
local holder, fence = unpack(redis.call("MGET", KEYS[1], KEYS[3]))
if holder ~= ARGV[1] then
	redis.call("LREM", KEYS[2], 1, ARGV[1])
	if not holder then serve(ARGV[2], nil, fence) end
	return 0
end
if not serve(ARGV[2], nil, fence) then redis.call("DEL", KEYS[1]) end
return 1`

// handoffScripts are the scripts for plain channels, or those for sharded channels.
type handoffScripts struct{ ask, leave *redis.Script }

func handoffBy(publish, listeners string) handoffScripts {
	by := func(text string) *redis.Script {
		return redis.NewScript(strings.NewReplacer(`"PUBLISH"`, `"`+publish+`"`, `"NUMSUB"`,
			`"`+listeners+`"`).Replace(text))
	}
	return handoffScripts{by(askInLine), by(leaveLine)}
}

var published, sharded = handoffBy("PUBLISH", "NUMSUB"), handoffBy("SPUBLISH", "SHARDNUMSUB")

// queueLasts is the TTL of a queue on the server. Waiters send requests far more often, which renew it.
const queueLasts = time.Hour

func handoffKeys(key string) []string {
	return []string{key, sibling("handoff_queue", key), fenceKey(key)}
}

// handoffLock is the lock of one worker. Its queue is on the server, and a release grants the lock to the next waiter
// by a message. handoff-cohort is built on it.
type handoffLock struct {
	leaseLock
	env    locks.Env
	hub    *handoffHub
	fences int64                    // number of fencing tokens of each grant
	places map[string]*handoffPlace // by key
	held   map[string]*handoffPlace // by token: holds whose message may still arrive
}

func newHandoff(e locks.Env, fences int64) *handoffLock {
	return &handoffLock{leaseLock: leaseLock{e.Sites[0]}, env: e, fences: fences,
		places: map[string]*handoffPlace{}, held: map[string]*handoffPlace{}}
}

// handoffPlace is a place in a queue. It belongs to one worker; the hub writes to granted.
type handoffPlace struct {
	line, key string
	ttl       time.Duration
	wire      *handoffWire
	cut       <-chan struct{} // closed when messages may have been lost since the last reply
	call      time.Time       // time of the last request with the reply "in line"
	answered  time.Time
	clock     time.Duration // server's clock in that reply
	left      time.Duration // rest of the holder's lease in that reply
	granted   chan handoffGrant
	heard     int // number of messages on the connection when the place was taken
}

// handoffGrant is the content of a message: the last fencing token of the grant, and the server's clock.
type handoffGrant struct {
	fence int64
	clock time.Duration
}

// errNoPlace means that the worker has no place in the queue, and must try again.
var errNoPlace = errors.New("no place in the queue")

// Acquire makes one try, and takes a place in the queue if another worker holds the lock. If the worker has a place
// already, it asks about that place.
func (l *handoffLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	// again is the time from the call to the beginning of the try that counts
	called, again := time.Now(), time.Duration(0)
	if err := l.open(); err != nil {
		return locks.Lease{Key: key}, err
	}
	if lease, since, ok := l.Handed(key); ok {
		lease.Spent += time.Since(since)
		return lease, nil
	}
	if p, ok := l.places[key]; ok {
		if lease, err := l.again(ctx, p); !errors.Is(err, errNoPlace) {
			return lease, err
		}
		again = time.Since(called)
	}
	wire := l.hub.wire(key)
	if wire == nil { // try without a place first: the lock may be granted without a subscription
		lease, err := l.ask(ctx, &handoffPlace{line: rand.Text(), key: key, ttl: ttl}, "try")
		if !errors.Is(err, locks.ErrBusy) {
			lease.Tried = again
			return lease, err
		}
		if wire, err = l.hub.listen(ctx, key); err != nil {
			return locks.Lease{Key: key}, err
		}
		again = time.Since(called)
	}
	p := &handoffPlace{key: key, ttl: ttl, wire: wire, heard: wire.heard(), granted: make(chan handoffGrant, 1),
		line: rand.Text() + "|" + strconv.FormatInt(ttl.Milliseconds(), 10) + "|" + wire.channel}
	l.places[key] = p
	l.hub.expect(p) // registered before its message can arrive
	lease, err := l.ask(ctx, p, "new")
	lease.Tried = again
	return lease, err
}

func (l *handoffLock) open() (err error) {
	if l.hub == nil {
		l.hub, err = locks.Share(l.env.Process, l.shared(), func() (*handoffHub, error) {
			return newHandoffHub(l.env, l.fences), nil
		})
	}
	return err
}

func (l *handoffLock) shared() handoffHubKey { return handoffHubKey{l.client, l.fences} }

// again repeats the request for a place in the queue. The error errNoPlace means that the place is lost.
func (l *handoffLock) again(ctx context.Context, p *handoffPlace) (locks.Lease, error) {
	if p.wire.isClosed() {
		l.forget(p)
		// an error does not matter: the process does not listen, so the line is dropped when it is first
		_ = l.hub.leave(ctx, p.key, p.line)
		return locks.Lease{}, errNoPlace
	}
	lease, err := l.ask(ctx, p, "again")
	if errors.Is(err, errNoPlace) {
		l.forget(p)
		if p.wire.heard() == p.heard {
			l.hub.drop(p.wire) // the server may have lost the subscription without notice
		}
	}
	return lease, err
}

// ask sends a request for a place. If the outcome is unknown, the line may be in the queue or hold the lock. The
// worker then releases it and never uses its id again, because a late release would end a later hold.
func (l *handoffLock) ask(ctx context.Context, p *handoffPlace, how string) (locks.Lease, error) {
	if p.wire != nil {
		p.cut = p.wire.now()
	}
	lease, call := locks.Lease{Key: p.key}, time.Now()
	r, err := l.hub.scripts.ask.Run(ctx, l.client, handoffKeys(p.key), p.line, p.ttl.Milliseconds(), l.fences,
		how).Int64Slice()
	if err != nil {
		outcome, _ := locks.Classify(err)
		if outcome == history.Unknown {
			lease.Token = p.line
		}
		if outcome == history.Unknown || how != "again" {
			l.forget(p)
		}
		return lease, err
	}
	switch r[0] {
	case first:
		l.hub.forget(p) // no message will come
		return l.hold(p, r[1], call), nil
	case before:
		l.held[p.line] = p
		return l.hold(p, r[1], call), nil
	case dropped:
		return lease, errNoPlace
	}
	p.call, p.answered, p.left, p.clock = call, time.Now(), time.Duration(r[1])*time.Millisecond,
		time.Duration(r[2])*time.Microsecond
	return lease, locks.ErrBusy
}

// Handed returns a grant that a message has brought. It computes the beginning of the lease from the server's clock
// in the last reply and in the message. If that reply was slow, the result is too inexact, and the next Acquire asks
// the server.
func (l *handoffLock) Handed(key string) (lease locks.Lease, since time.Time, ok bool) {
	p, ok := l.places[key]
	if !ok {
		return lease, since, false
	}
	select {
	case g := <-p.granted:
		since = p.call.Add(g.clock - p.clock - time.Microsecond)
		if time.Until(locks.Until(since, p.ttl)) < p.ttl/2 || p.answered.Sub(since) > p.ttl/200 {
			return lease, since, false
		}
		return l.hold(p, g.fence, since), since, true
	default:
		return lease, since, false
	}
}

// hold returns the lease of a grant. The last argument is the earliest time at which the lease can have begun.
func (l *handoffLock) hold(p *handoffPlace, fence int64, began time.Time) locks.Lease {
	delete(l.places, p.key)
	return locks.Lease{Key: p.key, Token: p.line, Fence: fence - l.fences + 1, Until: locks.Until(began, p.ttl)}
}

// forget ends a wait. If the server grants the lock to this place later, the hub releases that grant.
func (l *handoffLock) forget(p *handoffPlace) {
	delete(l.places, p.key)
	l.hub.forget(p)
}

// Release hands the lock to the first in the queue.
func (l *handoffLock) Release(ctx context.Context, lease locks.Lease) error {
	if err := l.open(); err != nil { // a worker of handoff-cohort may release without an earlier request to the server
		return err
	}
	if p, ok := l.held[lease.Token]; ok {
		delete(l.held, lease.Token)
		defer l.hub.forget(p)
	}
	return l.hub.leave(ctx, lease.Key, lease.Token)
}

// Wait waits for the message of a grant, and at most until the holder's lease ends.
func (l *handoffLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	p, ok := l.places[key]
	if !ok {
		return history.Poll, errors.Join(errNoPlace, context.Cause(ctx))
	}
	if ctx.Err() == nil {
		// The wait ends a little after the lease, because the server rounds times. The delay is random, so that not
		// all waiters ask at the same moment.
		late := 2*time.Millisecond + time.Duration(l.env.Rand.Int64N(int64(10*time.Millisecond)))
		timer := time.NewTimer(max(time.Until(p.call.Add(min(p.left, queueLasts/2))), 0) + late)
		defer timer.Stop()
		select {
		case g := <-p.granted:
			p.granted <- g // put back for the next call of Handed
			return history.Signal, nil
		case <-p.cut:
			return history.Poll, nil
		case <-timer.C:
			return history.LeaseEnd, nil
		case <-ctx.Done():
		}
	}
	l.forget(p)
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
	defer cancel()
	err := l.hub.leave(left, key, p.line)
	if errors.Is(err, locks.ErrLost) {
		err = nil
	}
	return history.Poll, errors.Join(context.Cause(ctx), err)
}

// Close forgets the places and holds. It releases none of them.
func (l *handoffLock) Close() error {
	if l.hub == nil {
		return nil
	}
	for _, p := range l.places {
		l.hub.forget(p)
	}
	for _, p := range l.held {
		l.hub.forget(p)
	}
	clear(l.places)
	clear(l.held)
	l.hub = nil
	return l.env.Process.Drop(l.shared())
}
