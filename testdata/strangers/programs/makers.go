package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

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
