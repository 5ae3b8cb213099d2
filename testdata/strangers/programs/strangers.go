// Command strangers is a driver of locks in the manner of strangers, written before the scenarios that try them:
// strangers NAME. Each says whether it is right, and what is wrong with it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type message struct {
	ID      uint64 `json:"id"`
	Op      string `json:"op"`
	Worker  int    `json:"worker"`
	Key     string `json:"key"`
	TTL     int64  `json:"ttl_ms"`
	Wait    int64  `json:"wait_ms"`
	Hold    uint64 `json:"hold"`
	Mode    string `json:"mode"`
	Permits int    `json:"permits"`
	Sites   []struct {
		Host  string   `json:"host"`
		Port  int      `json:"port"`
		User  string   `json:"user"`
		Pass  string   `json:"pass"`
		DB    int      `json:"db"`
		Addrs []string `json:"addrs"`
	} `json:"sites"`
}

// conn speaks RESP.
type conn struct {
	net.Conn
	r *bufio.Reader
}

type serverError string

func (e serverError) Error() string { return string(e) }

var (
	addrs          []string
	user, pass     string
	db             int
	timeout        = 2 * time.Second
	inline         bool // commands as lines, as in telnet
	pool           = make(chan *conn, 256)
	most           chan struct{} // connections at a time; nil = any number
	mu             sync.Mutex
	state          = map[string]any{}
	ifOurs         = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0`
	trust          = []string{"excludes", "expires", "owned", "cleans"}
	releaseScript  = fmt.Sprintf(ifOurs, `"DEL", KEYS[1]`)
	prolongsScript = fmt.Sprintf(ifOurs, `"PEXPIRE", KEYS[1], ARGV[2]`)
)

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	k := &conn{c, bufio.NewReader(c)}
	if pass != "" {
		if user != "" {
			_, err = k.do("AUTH", user, pass)
		} else {
			_, err = k.do("AUTH", pass)
		}
	}
	if err == nil && db != 0 {
		_, err = k.do("SELECT", strconv.Itoa(db))
	}
	return k, err
}

func (c *conn) do(words ...string) (any, error) {
	_ = c.SetDeadline(time.Now().Add(timeout))
	if inline {
		_, _ = io.WriteString(c, strings.Join(words, " ")+"\r\n")
	} else {
		fmt.Fprintf(c, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(c, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return c.read()
}

func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	rest := strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(rest)
	switch {
	case line[0] == '-':
		return nil, serverError(rest)
	case line[0] == ':':
		return n, nil
	case line[0] == '+':
		return rest, nil
	case n < 0:
		return nil, nil
	case line[0] == '$':
		b := make([]byte, n+2)
		_, err = io.ReadFull(c.r, b)
		return string(b[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// call sends a command on a connection of the pool.
func call(words ...any) (any, error) {
	if most != nil {
		most <- struct{}{}
		defer func() { <-most }()
	}
	var c *conn
	var err error
	select {
	case c = <-pool:
	default:
		if c, err = dial(addrs[0]); err != nil {
			return nil, err
		}
	}
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprint(w)
	}
	reply, err := c.do(list...)
	if _, is := err.(serverError); err != nil && !is {
		_ = c.Close()
		return reply, err
	}
	pool <- c
	return reply, err
}

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

const row = `local t = redis.call("TIME") local now = t[1] * 1000 + math.floor(t[2] / 1000)
	local owner, stop = string.match(redis.call("GET", KEYS[1]) or "|0", "(.*)|(.*)") stop = tonumber(stop) `

// forgetting is plain, and forgets something when a connection has broken.
func forgetting(forget func()) lock {
	broken := func(err error) error {
		if _, is := err.(serverError); err != nil && !is {
			mu.Lock()
			defer mu.Unlock()
			forget()
		}
		return err
	}
	return lock{trust, "",
		func(m *message, token string) (string, error) {
			got, err := set(m, token)
			return got, broken(err)
		},
		func(m *message, key, token string) (bool, error) {
			ok, err := prolong(m, key, token)
			return ok, broken(err)
		},
		func(key, token string) (bool, error) {
			ok, err := del(key, token)
			return ok, broken(err)
		}}
}

var renewer sync.Once

// renewedByOne is set; what it has granted is renewed with all others.
func renewedByOne(m *message, token string) (string, error) {
	got, err := set(m, token)
	renewer.Do(func() {
		go func() {
			for range time.Tick(time.Duration(m.TTL) * time.Millisecond / 5) {
				mu.Lock()
				all := make([][2]string, 0, len(holds))
				for _, h := range holds {
					all = append(all, h)
				}
				mu.Unlock()
				for _, h := range all {
					if _, err := prolong(m, h[0], h[1]); errors.Is(err, syscall.ECONNREFUSED) {
						return
					}
				}
			}
		}()
	})
	return got, err
}

// clustered is plain on a cluster.
func clustered(forever bool) lock {
	type place struct {
		addr  string
		known bool
	}
	places, idle := map[string]place{}, map[string][]*conn{}
	send := func(addr string, asking bool, list []string) (reply any, err error) {
		mu.Lock()
		var c *conn
		if n := len(idle[addr]); n > 0 {
			c, idle[addr] = idle[addr][n-1], idle[addr][:n-1]
		}
		mu.Unlock()
		if c == nil {
			if c, err = dial(addr); err != nil {
				return nil, err
			}
		}
		if asking {
			_, err = c.do("ASKING")
		}
		if err == nil {
			reply, err = c.do(list...)
		}
		if _, is := err.(serverError); err != nil && !is {
			_ = c.Close()
			return reply, err
		}
		mu.Lock()
		defer mu.Unlock()
		idle[addr] = append(idle[addr], c)
		return reply, err
	}
	call := func(key string, words ...any) (reply any, err error) {
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = fmt.Sprint(w)
		}
		mu.Lock()
		at := places[key]
		mu.Unlock()
		if at.addr == "" {
			at.addr = addrs[0]
		}
		asking := false
		for range 5 {
			if reply, err = send(at.addr, asking, list); err == nil {
				return reply, nil
			}
			f := strings.Fields(err.Error())
			if len(f) != 3 || f[0] != "MOVED" && f[0] != "ASK" || forever && at.known {
				return reply, err
			}
			at.addr, asking = f[2], f[0] == "ASK"
			if !asking {
				mu.Lock()
				places[key] = place{at.addr, true}
				mu.Unlock()
			}
		}
		return nil, errors.New("too many redirections")
	}
	return lock{trust, `,"topologies":["single","cluster"]`,
		func(m *message, token string) (string, error) {
			reply, err := call(m.Key, "SET", m.Key, token, "NX", "PX", m.TTL)
			if reply != "OK" {
				token = ""
			}
			return token, err
		},
		func(m *message, key, token string) (bool, error) {
			return is(call(key, "EVAL", prolongsScript, 1, key, token, m.TTL))
		},
		func(key, token string) (bool, error) { return is(call(key, "EVAL", releaseScript, 1, key, token)) }}
}

func second(_ any, err error) error { return err }

func renewing(times int) func(m *message, token string) (string, error) {
	return func(m *message, token string) (string, error) {
		began := time.Now()
		got, err := set(m, token)
		if got == "" || err != nil {
			return got, err
		}
		lease := time.Duration(m.TTL) * time.Millisecond
		id, key, ttl, end := m.ID, m.Key, m.TTL, began.Add(lease)
		renewed := make(chan time.Time, 1)
		go func() { // it tells of the loss in time, whether or not a renewal is answered
			for {
				select {
				case end = <-renewed:
				case <-time.After(time.Until(end.Add(-lease / 10))):
					say(map[string]any{"event": "lost", "hold": id, "error": "not renewed"})
					return
				}
			}
		}()
		go func() {
			for n := 0; ; n++ {
				time.Sleep(lease / 5)
				mu.Lock()
				_, held := holds[id]
				mu.Unlock()
				if n >= times || !held {
					if !held || times < 1<<20 {
						renewed <- time.Now().Add(time.Hour) // wrong where it ends silently
					}
					return
				}
				call := time.Now()
				if ok, err := prolong(&message{TTL: ttl}, key, token); ok && err == nil {
					renewed <- call.Add(lease)
				} else if err == nil {
					renewed <- time.Now()
					return
				}
			}
		}()
		return got, nil
	}
}

func file(key string) string {
	dir := filepath.Join(os.TempDir(), "hammerlock-flock-go")
	_ = os.MkdirAll(dir, 0o755)
	return filepath.Join(dir, strings.NewReplacer("/", "_").Replace(key))
}

func flock(bool) func(m *message, token string) (string, error) {
	return func(m *message, token string) (string, error) {
		f, err := os.OpenFile(file(m.Key), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return "", err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return "", f.Close()
		}
		mu.Lock()
		state[token] = f
		mu.Unlock()
		return token, nil
	}
}

func unflock(unlink bool) func(key, token string) (bool, error) {
	return func(key, token string) (bool, error) {
		mu.Lock()
		f := state[token].(*os.File)
		delete(state, token)
		mu.Unlock()
		if unlink {
			_ = os.Remove(file(key))
		}
		return true, f.Close()
	}
}

var (
	holds   = map[uint64][2]string{}
	writing sync.Mutex
)

func say(m map[string]any) {
	b, _ := json.Marshal(m)
	writing.Lock()
	defer writing.Unlock()
	_, _ = os.Stdout.Write(append(b, '\n'))
}

func serve(l lock, m *message) {
	a := map[string]any{"id": m.ID}
	defer func() { say(a) }()
	fail := func(err error, token string) { a["error"], a["token"] = err.Error(), token }
	mu.Lock()
	h := holds[m.Hold]
	mu.Unlock()
	switch m.Op {
	case "open":
		s := m.Sites[0]
		addrs, user, pass, db = s.Addrs, s.User, s.Pass, s.DB
	case "acquire":
		token := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
		mu.Lock()
		holds[m.ID] = [2]string{m.Key, token}
		mu.Unlock()
		got, err := l.acquire(m, token)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			fail(err, token)
			return
		case got == "":
			delete(holds, m.ID)
			a["busy"], a["token"] = true, token
			return
		}
		holds[m.ID] = [2]string{m.Key, got}
		a["token"] = got
	case "extend", "release":
		var ok bool
		var err error
		if m.Op == "extend" {
			ok, err = l.extend(m, h[0], h[1])
		} else {
			mu.Lock()
			delete(holds, m.Hold)
			mu.Unlock()
			ok, err = l.release(h[0], h[1])
		}
		if err != nil {
			fail(err, "")
			return
		}
		if !ok {
			a["lost"] = true
			return
		}
	}
	a["ok"] = true
}

func main() {
	if len(os.Args) < 2 || locks[os.Args[1]].acquire == nil {
		fmt.Fprintln(os.Stderr, "strangers NAME, one of", locks)
		os.Exit(2)
	}
	l := locks[os.Args[1]]
	claims, _ := json.Marshal(l.claims)
	fmt.Printf(`{"hello":"hammerlock-driver","protocol":1,"name":%q,"version":"1","claims":%s%s}`+"\n", os.Args[1],
		claims, l.hello)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		m := new(message)
		if json.Unmarshal(in.Bytes(), m) == nil {
			go serve(l, m)
		}
	}
}
