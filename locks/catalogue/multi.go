package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var multi = locks.Spec{
	Name: "multi",
	Doc: "several keys at once, all or nothing, by one script; in a cluster by a script for each slot, " +
		"in one order, given back on a refusal",
	Source:  "Redisson, getMultiLock, in one slot and so in one step",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  multiClaims,
	Shared:  true,
	Open:    func(e locks.Env) (locks.Lock, error) { return &multiLock{e.Sites[0], allKeys}, nil },
}

var redlockMulti = locks.Spec{
	Name:    "redlock-multi",
	Doc:     "redlock of several keys: a site grants all of them or none, by one script",
	Source:  "npm redlock 4 and 5, an array of resources",
	Sites:   locks.ManySites,
	Assumes: keepsQuorum + doneInTime,
	Claims:  multiClaims,
	Shared:  true,
	Open: func(e locks.Env) (locks.Lock, error) {
		l := newRedlock(e)
		l.site = allKeys
		return &redlockMultiLock{l}, nil
	},
}

var multiClaims = history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Sets: true, Crosses: true}

type multiLock struct {
	client redis.UniversalClient
	site   siteLock
}

var (
	takeAll = redis.NewScript(`
for _, key in ipairs(KEYS) do if redis.call("EXISTS", key) == 1 then return 0 end end
for _, key in ipairs(KEYS) do redis.call("SET", key, ARGV[1], "PX", ARGV[2]) end
return 1`)
	extendAll = redis.NewScript(`
for _, key in ipairs(KEYS) do if redis.call("GET", key) ~= ARGV[1] then return 0 end end
for _, key in ipairs(KEYS) do redis.call("PEXPIRE", key, ARGV[2]) end
return 1`)
	// The caller's keys are deleted even if the caller has lost one of them.
	deleteAll = redis.NewScript(`
local all = 1
for _, key in ipairs(KEYS) do
	if redis.call("GET", key) == ARGV[1] then redis.call("DEL", key) else all = 0 end
end
return all`)
)

// allKeys has the requests of a lock on several keys: each request is about all keys of the lease.
var allKeys = siteLock{take: takeKeys, keep: keepKeys, give: giveKeys}

// slots groups the keys of a lease by their cluster slot, because a script can use the keys of only one slot. The
// order of the groups is the same for all callers, so that they do not deadlock. Without a cluster there is one
// group.
func slots(c redis.UniversalClient, lease locks.Lease) (all [][]string) {
	keys := slices.Clone(lease.Keys)
	if len(keys) == 0 {
		keys = []string{lease.Key}
	}
	slices.Sort(keys)
	if _, cluster := c.(*redis.ClusterClient); !cluster {
		return [][]string{keys}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return strings.Compare(hashTag(a), hashTag(b)) })
	for i, key := range keys {
		if i == 0 || hashTag(key) != hashTag(keys[i-1]) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], key)
	}
	return all
}

// hashTag returns the part of a key that determines its cluster slot.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

func takeKeys(ctx context.Context, c redis.UniversalClient, lease locks.Lease, ttl time.Duration) error {
	all := slots(c, lease)
	for i, keys := range all {
		err := granted(takeAll.Run(ctx, c, keys, lease.Token, max(ttl.Milliseconds(), 1)).Int64())
		if err == nil {
			continue
		}
		return undone(err, giveSlots(context.WithoutCancel(ctx), c, all[:i], lease.Token))
	}
	return nil
}

// undone returns the error of a failed try after the keys that the try had taken were released. The argument back is
// the error of that release: if it failed too, the outcome of the try is unknown.
func undone(err, back error) error {
	if back == nil || errors.Is(back, locks.ErrLost) {
		return err
	}
	return locks.AfterGrant(back)
}

func keepKeys(ctx context.Context, c redis.UniversalClient, lease locks.Lease, ttl time.Duration) error {
	var errs []error
	for _, keys := range slots(c, lease) {
		errs = append(errs, owned(extendAll.Run(ctx, c, keys, lease.Token, max(ttl.Milliseconds(), 1)).Int64()))
	}
	return together(errs)
}

func giveKeys(ctx context.Context, c redis.UniversalClient, lease locks.Lease) error {
	return giveSlots(ctx, c, slots(c, lease), lease.Token)
}

func giveSlots(ctx context.Context, c redis.UniversalClient, all [][]string, token string) error {
	var errs []error
	for _, keys := range all {
		errs = append(errs, owned(deleteAll.Run(ctx, c, keys, token).Int64()))
	}
	return together(errs)
}

// together combines the errors of the requests for one hold. If a key is lost, the hold is lost. After another error
// the outcome is unknown if there were several requests, because some of them may have succeeded.
func together(errs []error) (err error) {
	for _, e := range errs {
		switch {
		case e == nil, errors.Is(e, locks.ErrLost) && err != nil:
		case errors.Is(e, locks.ErrLost) || len(errs) == 1:
			err = e
		default:
			err = locks.AfterGrant(e)
		}
	}
	return err
}

func (l *multiLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireAll(ctx, []string{key}, ttl, 0)
}

func (l *multiLock) AcquireAll(ctx context.Context, keys []string, ttl, _ time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: keys[0], Keys: keys, Token: rand.Text()}
	call := time.Now()
	return from(lease, call, ttl, l.site.take(ctx, l.client, lease, ttl))
}

func (l *multiLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	return from(lease, call, ttl, l.site.keep(ctx, l.client, lease, ttl))
}

func (l *multiLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.site.give(ctx, l.client, lease)
}

func (l *multiLock) Close() error { return nil }

type redlockMultiLock struct{ *redlockLock }

func (l *redlockMultiLock) AcquireAll(ctx context.Context, keys []string, ttl, _ time.Duration) (locks.Lease, error) {
	return l.acquire(ctx, locks.Lease{Key: keys[0], Keys: keys, Token: rand.Text()}, ttl)
}
