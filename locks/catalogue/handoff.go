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

// KEYS of these scripts: the lock, the queue and the last fencing token. Each waiter has a line in the queue:
// "id|lease in ms|channel". The id is new for each wait, and the waiter's process is subscribed to the channel. A
// lock that is held has the holder's line as its value.

// handOn defines the Lua function serve(n, own, last), which grants the lock to the first waiter in the queue. The
// argument n is the number of fencing tokens for a grant, and own is the caller's line. The argument last is the
// last fencing token; nil = serve reads it.
//
// It returns true after a grant to another waiter, and false if the queue is empty. If own comes first, it returns
// own, and the caller takes the lock. It removes waiters whose process is dead, because a grant to a dead process
// would block the lock for a whole lease.
//
// A process counts as dead if its channel has no subscriber. serve counts the subscribers before it sends the message.
// So a former primary without subscribers sends none; its replicas would pass on the message of a grant that was not
// made. For sharded channels in a cluster, "PUBLISH" is replaced by "SPUBLISH" and "NUMSUB" by "SHARDNUMSUB".
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
	first               // the lock is granted to the caller now: {1, fencing token}
	// before: the lock was granted to the caller earlier; the message is late or lost: {2, fencing token}.
	before
	dropped // the server has lost the caller's place: {3}
)

// askInLine asks for the lock. ARGV: the line, the lease in ms, the number of fencing tokens for a grant, and the
// mode. In the mode "try" a refused caller does not join the queue, in "new" it joins, in "again" it has joined
// before.
//
// A free lock with a queue means that the last lease has expired. The queue has a TTL of an hour. To save commands,
// the mode "new" renews it only if the queue was empty, and at random in one of 64 calls.
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

// leaveLine releases the caller's lock, or removes the caller from the queue. It returns 1 if the caller held the
// lock. ARGV: the line and the number of fencing tokens for a grant.
const leaveLine = handOn + `
local holder, fence = unpack(redis.call("MGET", KEYS[1], KEYS[3]))
if holder ~= ARGV[1] then
	redis.call("LREM", KEYS[2], 1, ARGV[1])
	if not holder then serve(ARGV[2], nil, fence) end
	return 0
end
if not serve(ARGV[2], nil, fence) then redis.call("DEL", KEYS[1]) end
return 1`

// handoffScripts are the scripts for one kind of channels, plain or sharded.
type handoffScripts struct{ ask, leave *redis.Script }

func handoffBy(publish, listeners string) handoffScripts {
	by := func(text string) *redis.Script {
		return redis.NewScript(strings.NewReplacer(`"PUBLISH"`, `"`+publish+`"`, `"NUMSUB"`,
			`"`+listeners+`"`).Replace(text))
	}
	return handoffScripts{by(askInLine), by(leaveLine)}
}

var published, sharded = handoffBy("PUBLISH", "NUMSUB"), handoffBy("SPUBLISH", "SHARDNUMSUB")

// queueLasts is the TTL of a queue on the server. The requests of waiters renew it long before it ends.
const queueLasts = time.Hour

func handoffKeys(key string) []string {
	return []string{key, sibling("handoff_queue", key), fenceKey(key)}
}

// handoffLock is the lock of one worker. Waiters queue on the server, and a release passes the lock to the first of
// them by a message. The lock "handoff-cohort" is built on it.
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

// handoffPlace is a place in a queue. Only its worker uses it, except for the channel granted, to which the hub
// sends.
type handoffPlace struct {
	line, key string
	ttl       time.Duration
	wire      *handoffWire
	cut       <-chan struct{} // closed if messages may have been lost since the last request
	call      time.Time       // when the last request was sent that was answered "in line"
	answered  time.Time
	clock     time.Duration // server's clock in the answer to that request
	left      time.Duration // rest of the holder's lease in the same answer
	granted   chan handoffGrant
	heard     int // number of messages on the connection before the place was taken
}

// handoffGrant is the content of a message: the last fencing token of the grant and the server's clock.
type handoffGrant struct {
	fence int64
	clock time.Duration
}

// errNoPlace means that the worker has no place in the queue, and must try again.
var errNoPlace = errors.New("no place in the queue")

// Acquire makes one try, and joins the queue if another worker holds the lock. A worker that is in the queue already
// asks whether it has the lock now.
func (l *handoffLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	// again is the time from the call to the start of the last try.
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
	if wire == nil { // the first try does not queue: if the lock is free, no subscription is needed
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
	l.hub.expect(p) // before the request, so that no message comes too early
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

// again asks about a place that the worker has in the queue. It returns errNoPlace if the place is lost.
func (l *handoffLock) again(ctx context.Context, p *handoffPlace) (locks.Lease, error) {
	if p.wire.isClosed() {
		l.forget(p)
		// An error does not matter: the channel has no subscriber, so serve removes the line.
		_ = l.hub.leave(ctx, p.key, p.line)
		return locks.Lease{}, errNoPlace
	}
	lease, err := l.ask(ctx, p, "again")
	if errors.Is(err, errNoPlace) {
		l.forget(p)
		if p.wire.heard() == p.heard {
			l.hub.drop(p.wire) // no message came: the server may have lost the subscription without notice
		}
	}
	return lease, err
}

// ask sends a request for a place. If its outcome is unknown, the line may be in the queue or hold the lock. The
// worker then releases the line and never uses it again. Otherwise a release that arrives late could end a later
// hold.
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

// Handed returns a grant that a message has brought. The lease began at the time since, which is computed from the
// server's clock in the last answer and in the message. If that answer was slow, the result is too inexact. Then ok
// is false, and the next Acquire asks the server.
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

// hold returns the lease of a grant; began is the earliest time at which the lease can have begun.
func (l *handoffLock) hold(p *handoffPlace, fence int64, began time.Time) locks.Lease {
	delete(l.places, p.key)
	return locks.Lease{Key: p.key, Token: p.line, Fence: fence - l.fences + 1, Until: locks.Until(began, p.ttl)}
}

// forget ends a wait. If the server still grants the lock to this place, the hub releases the lock.
func (l *handoffLock) forget(p *handoffPlace) {
	delete(l.places, p.key)
	l.hub.forget(p)
}

// Release passes the lock to the first waiter in the queue.
func (l *handoffLock) Release(ctx context.Context, lease locks.Lease) error {
	if err := l.open(); err != nil { // a worker of handoff-cohort may release without a request before
		return err
	}
	if p, ok := l.held[lease.Token]; ok {
		delete(l.held, lease.Token)
		defer l.hub.forget(p)
	}
	return l.hub.leave(ctx, lease.Key, lease.Token)
}

// Wait returns when the message of a grant comes, when messages may have been lost, or a few milliseconds after the
// holder's lease has ended.
func (l *handoffLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	p, ok := l.places[key]
	if !ok {
		return history.Poll, errors.Join(errNoPlace, context.Cause(ctx))
	}
	if ctx.Err() == nil {
		// The wait lasts a little longer than the lease, because the server rounds times. The delay is random, so
		// that the waiters do not all ask at the same moment.
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

// Close forgets all places and holds without releasing them.
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
