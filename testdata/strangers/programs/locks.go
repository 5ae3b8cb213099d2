package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

type lock struct {
	claims  []string
	hello   string                                         // more of the greeting
	acquire func(m *message, token string) (string, error) // the token; empty = busy
	extend  func(m *message, key, token string) (bool, error)
	release func(key, token string) (bool, error)
}

func set(m *message, token string) (string, error) {
	reply, err := call("SET", m.Key, token, "NX", "PX", m.TTL)
	if reply != "OK" {
		token = ""
	}
	return token, err
}

func is(reply any, err error) (bool, error) { return reply == 1, err }

func prolong(m *message, key, token string) (bool, error) {
	return is(call("EVAL", prolongsScript, 1, key, token, m.TTL))
}

func del(key, token string) (bool, error) { return is(call("EVAL", releaseScript, 1, key, token)) }

var locks = map[string]lock{
	// Right: SET NX PX, compare and delete.
	"plain": {trust, "", set, prolong, del},

	// 10. Right: a record with the end of the lease by the server's clock, which stays for ever.
	"row": {[]string{"excludes", "expires", "owned"}, "", func(m *message, token string) (string, error) {
		got, err := is(call("EVAL",
			row+`if stop > now then return 0 end redis.call("SET", KEYS[1], ARGV[1] .. "|" .. now + ARGV[2]) return 1`,
			1, m.Key, token, m.TTL))
		if !got {
			token = ""
		}
		return token, err
	}, func(m *message, key, token string) (bool, error) {
		return is(call("EVAL", row+`if owner ~= ARGV[1] or stop <= now then return 0 end
			redis.call("SET", KEYS[1], ARGV[1] .. "|" .. now + ARGV[2]) return 1`, 1, key, token, m.TTL))
	}, func(key, token string) (bool, error) {
		return is(call("EVAL",
			row+`if owner ~= ARGV[1] or stop <= now then return 0 end redis.call("SET", KEYS[1], "|0") return 1`, 1,
			key, token))
	}},
	// 10. Wrong: who is refused three times is banned for ten seconds, and all others with him.
	"bans": {trust, "", func(m *message, token string) (string, error) {
		if n, err := call("GET", m.Key+":refused"); err != nil {
			return "", err
		} else if s, _ := n.(string); len(s) > 2 {
			return "", nil
		}
		got, err := set(m, token)
		if got == "" && err == nil {
			_, err = call("APPEND", m.Key+":refused", "x")
			_, _ = call("PEXPIRE", m.Key+":refused", 10_000)
		}
		return got, err
	}, prolong, del},

	// 9. Wrong: the key is that of the job, and stays for longer than its period: ticks are left out.
	"job-name": {[]string{"excludes", "expires", "once"}, "", func(m *message, token string) (string, error) {
		m.Key = strings.TrimRight(m.Key, "0123456789}")
		return set(m, token)
	}, prolong, func(string, string) (bool, error) { return true, nil }},

	// 11. Right: flock on a file, which ends with the process.
	"flock": {[]string{"excludes", "owned", "session"}, "", flock(false), func(*message, string, string) (bool, error) {
		return true, nil
	}, unflock(false)},
	// 11. Wrong: the file is removed on release, so that two may lock two files of one name.
	"flock-unlink": {
		[]string{"excludes", "owned", "session"}, "", flock(true), func(*message, string, string) (bool, error) {
			return true, nil
		}, unflock(true),
	},

	// 11. Right: a semaphore as a sorted set. Wrong: it is counted first and taken then.
	"zset-two-steps": {[]string{"excludes", "expires"}, `,"permits":3`, func(m *message, token string) (string, error) {
		n, err := call("ZCARD", m.Key)
		if err != nil || n.(int) >= 3 {
			return "", err
		}
		_, err = call("ZADD", m.Key, time.Now().UnixMilli(), token)
		return token, errors.Join(err, second(call("PEXPIRE", m.Key, m.TTL)))
	}, func(m *message, key, token string) (bool, error) { return is(call("PEXPIRE", key, m.TTL)) },
		func(key, token string) (bool, error) { return is(call("ZREM", key, token)) }},

	// 16. Wrong: tokens are numbers below a million.
	"short-token": {trust, "", func(m *message, _ string) (string, error) {
		return set(m, strconv.Itoa(rand.IntN(1000)))
	}, prolong, del},

	// 1. Wrong: a SET without an answer is tried again with a new token, and may land after its holder is gone.
	"new-token": {trust, "", func(m *message, token string) (string, error) {
		timeout = 60 * time.Millisecond
		got, err := set(m, token)
		if err != nil {
			return set(m, token+"-again")
		}
		return got, nil
	}, prolong, del},
	// 1. Right: the same with the same token, of which it gives back what may have landed.
	"hasty": {trust, "", func(m *message, token string) (string, error) {
		timeout = 60 * time.Millisecond
		return set(m, token)
	}, prolong, del},

	// 1. Wrong: an extension looks whose the key is, and then sets its end, whoever has it by then.
	"expire-late": {trust, "", set, func(m *message, key, token string) (bool, error) {
		if got, err := call("GET", key); err != nil || got != token {
			return false, err
		}
		return is(call("PEXPIRE", key, 20*m.TTL))
	}, del},

	// 2. Wrong: a release needs one of four connections, which waiters hold for a second each.
	"pool-of-four": {[]string{"excludes", "expires", "owned", "waits"}, "",
		func(m *message, token string) (string, error) {
			if most == nil {
				mu.Lock()
				if most == nil {
					most = make(chan struct{}, 4)
				}
				mu.Unlock()
			}
			most <- struct{}{}
			c, err := dial(addrs[0])
			defer func() { <-most }()
			if err != nil {
				return "", err
			}
			defer c.Close()
			for end := time.Now().Add(time.Duration(m.Wait) * time.Millisecond); ; {
				if reply, err := c.do("SET", m.Key, token, "NX", "PX", fmt.Sprint(m.TTL)); reply == "OK" || err != nil {
					return token, err
				}
				if !time.Now().Before(end) {
					return "", nil
				}
				time.Sleep(5 * time.Millisecond)
			}
		}, prolong, del},

	// 5. Wrong: the companion key has another hash slot.
	"companion": {trust, "", func(m *message, token string) (string, error) {
		got, err := is(call("EVAL",
			`if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
			redis.call("SET", KEYS[2], 1, "PX", ARGV[2]) return 1`, 2, m.Key, "companion:"+m.Key, token, m.TTL))
		if !got {
			token = ""
		}
		return token, err
	}, prolong, func(key, token string) (bool, error) {
		return is(call("EVAL",
			`if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("DEL", KEYS[2])
return redis.call("DEL", KEYS[1])`,
			2, key, "companion:"+key, token))
	}},

	// 6. Wrong: an extension adds to what is left of the lease.
	"adds-up": {trust, "", set, func(m *message, key, token string) (bool, error) {
		return is(call("EVAL", fmt.Sprintf(ifOurs, `"PEXPIRE", KEYS[1], ARGV[2] + redis.call("PTTL", KEYS[1])`), 1,
			key, token, m.TTL))
	}, del},
	// 6. Wrong: an extension to a shorter lease is not sent.
	"never-shorter": {trust, "", set, func(m *message, key, token string) (bool, error) {
		return is(call("EVAL",
			`if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("PEXPIRE", KEYS[1], ARGV[2], "GT")
return 1`,
			1, key, token, m.TTL))
	}, del},

	// 14. Wrong: where the script is gone a release is taken for done.
	"noscript-done": {trust, "", set, prolong, func(key, token string) (bool, error) {
		mu.Lock()
		sha, _ := state["sha"].(string)
		if sha == "" {
			reply, _ := call("SCRIPT", "LOAD", releaseScript)
			sha, _ = reply.(string)
			state["sha"] = sha
		}
		mu.Unlock()
		reply, err := call("EVALSHA", sha, 1, key, token)
		if e, is := err.(serverError); is && strings.HasPrefix(string(e), "NOSCRIPT") {
			return true, nil
		}
		return reply == 1, err
	}},

	// 15. Wrong: commands are lines, so that a name with a blank is two words.
	"inline": {trust, "", func(m *message, token string) (string, error) { inline = true; return set(m, token) },
		func(m *message, key, token string) (bool, error) {
			reply, err := call("GET", key)
			if reply != token {
				return false, err
			}
			return is(call("PEXPIRE", key, m.TTL))
		},
		func(key, token string) (bool, error) {
			reply, err := call("GET", key)
			if reply != token {
				return false, err
			}
			return is(call("DEL", key))
		}},

	// 15. Wrong: connections that are made after one has broken are on database 0.
	"redials": forgetting(func() { db = 0 }),
	// 15. Wrong: connections that are made after one has broken are the default user's.
	"redials-default": forgetting(func() { user = "" }),

	// 3. Wrong: one goroutine renews all holds, and ends when the server cannot be reached.
	"watchdog-dies": {append([]string{"renews"}, trust...), "", renewedByOne, prolong, del},

	// 8. Right: it goes where it is sent. Wrong: where each key is, is learnt once.
	"cluster":       clustered(false),
	"slots-forever": clustered(true),

	// 8. Wrong: a release that is not answered, of a key that is found to be ours still, is sent again as a plain DEL.
	"del-after-get": {trust, "", func(m *message, token string) (string, error) {
		timeout = 60 * time.Millisecond
		return set(m, token)
	}, prolong, func(key, token string) (bool, error) {
		ours, err := del(key, token)
		if _, is := err.(serverError); err == nil || is {
			return ours, err
		}
		if got, read := call("GET", key); read == nil && got == token {
			_, _ = call("DEL", key)
		}
		return false, err
	}},

	// reinhardt-web 737. Wrong: an extension is a release and an acquire, between which another may come.
	"reacquires": {trust, "", set, func(m *message, key, token string) (bool, error) {
		if ours, err := del(key, token); !ours || err != nil {
			return false, err
		}
		got, err := set(&message{Key: key, TTL: m.TTL}, token)
		return got != "", err
	}, del},

	// 13. Wrong: the watchdog ends silently after thirty renewals. Right: it goes on.
	"watchdog-thirty": {append([]string{"renews"}, trust...), "", renewing(30), prolong, del},
	"watchdog":        {append([]string{"renews"}, trust...), "", renewing(1 << 30), prolong, del},
}
