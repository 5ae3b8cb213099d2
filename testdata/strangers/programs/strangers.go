// Command strangers is a driver of locks in the manner of strangers, written before the scenarios that try them:
// strangers NAME. Each says whether it is right, and what is wrong with it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
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
