package wire

import (
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"hammerlock/history"
	"hammerlock/internal/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is a sink that keeps everything.
type record struct {
	mu       sync.Mutex
	sent     []*Request
	requests []*Request
	effects  []*Effect
	events   []Event
}

func (s *record) Sent(r *Request) { s.mu.Lock(); defer s.mu.Unlock(); s.sent = append(s.sent, r) }
func (s *record) Request(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}
func (s *record) Effect(e *Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := *e
	s.effects = append(s.effects, &kept)
}
func (s *record) Event(e Event) { s.mu.Lock(); defer s.mu.Unlock(); s.events = append(s.events, e) }

// show formats a reply for people.
func show(r Reply) string {
	switch r.Kind {
	case Unseen, NotExecuted:
		return map[Kind]string{Unseen: "unseen", NotExecuted: "not executed"}[r.Kind]
	case Nil:
		return "nil"
	case Error:
		return "-" + r.Text
	case Array, Map, Set, Push:
		var items []string
		for _, i := range r.Items {
			items = append(items, show(i))
		}
		return fmt.Sprintf("%s%v", map[Kind]string{Array: "", Map: "map", Set: "set", Push: "push"}[r.Kind], items)
	}
	return r.Text
}

// lines returns the requests, except those of the handshake, with their replies.
func (s *record) lines() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if slices.Contains([]string{"HELLO", "AUTH", "CLIENT"}, r.Args[0]) { // libraries send these
			continue
		}
		line := strings.Join(r.Args, " ") + ": " + show(r.Reply)
		if r.DB > 0 {
			line = fmt.Sprintf("db%d %s", r.DB, line)
		}
		if r.Lost {
			line += " (lost)"
		}
		list = append(list, line)
	}
	return list
}

func (s *record) kinds(k EventKind) (list []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Kind == k {
			list = append(list, e)
		}
	}
	return list
}

// behind is a server behind a proxy.
type behind struct {
	*record
	run   *Run
	addr  string // address of the server itself: a unix socket
	proxy *Proxy
}

// start runs a server on a unix socket, where other programs on this machine disturb little.
func start(t testing.TB, args ...string) (socket string, end func()) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "s")
	args = append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0"}, args...)
	cmd := exec.Command("redis-server", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	live.Wait(t, "the server answers", func() bool {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		defer c.Close()
		_, _ = c.Write([]byte("PING\r\n"))
		answer := make([]byte, 5)
		_, err = io.ReadFull(c, answer)
		return err == nil && string(answer) == "+PONG"
	})
	return socket, end
}

func up(t testing.TB, args ...string) *behind {
	t.Helper()
	addr, _ := start(t, args...)
	b := &behind{record: &record{}, addr: addr}
	b.run = &Run{Clock: history.NewOrderedClock(0), Sink: b.record}
	b.proxy = listen(t, b.run, Endpoint{Listen: "127.0.0.1:0", Dial: dialler(addr)})
	return b
}

func listen(t testing.TB, run *Run, e Endpoint) *Proxy {
	t.Helper()
	p, err := run.Listen(context.WithoutCancel(t.Context()), e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// ends waits until a proxy has no connections.
func ends(t testing.TB, p *Proxy) {
	t.Helper()
	live.Wait(t, "all connections end", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.conns) == 0 })
}

func client(t testing.TB, o redis.Options) *redis.Client {
	t.Helper()
	o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	c := redis.NewClient(&o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// networkOf returns "unix" for a path.
func networkOf(addr string) string {
	if strings.Contains(addr, "/") {
		return "unix"
	}
	return "tcp"
}

func dialler(addr string) Dial {
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, networkOf(addr), addr)
	}
}

// dial returns a client that sends bytes.
func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(networkOf(addr), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(live.Deadline))
	return c
}

// encode encodes a command.
func encode(line string) string {
	words := strings.Split(line, " ")
	out := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		out += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// until reads from a connection until the text ends with end.
func until(t testing.TB, c net.Conn, end string) string {
	t.Helper()
	var got []byte
	buf := make([]byte, 64<<10)
	for !strings.HasSuffix(string(got[max(0, len(got)-len(end)):]), end) {
		n, err := c.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			t.Fatalf("%v after %.300q", err, got)
		}
	}
	return string(got)
}

// conversations are each sent in one piece, with the records that are wanted.
var (
	long   = strings.Repeat("x", 300)
	digest = fmt.Sprintf("sha1:%x:300", sha1.Sum([]byte(long)))
)

var conversations = map[string]struct{ send, want []string }{
	"commands": {
		[]string{"set lock a nx", "SET lock b NX", "HSET h f 1", "HGETALL h", "GET none", "SET big " + long, "GET big",
			"INCR lock", "DEL lock h"},
		[]string{"SET lock a nx: OK", "SET lock b NX: nil", "HSET h f 1: 1", "HGETALL h: [f 1]", "GET none: nil",
			"SET big " + digest + ": OK",
			"GET big: " + digest, "INCR lock: -ERR value is not an integer or out of range", "DEL lock h: 2"},
	},
	"RESP3": {
		[]string{"HELLO 3", "HSET h f 1", "HGETALL h", "GET none", "ZADD z 1.5 a", "ZSCORE z a",
			"SADD s a", "SMEMBERS s",
			"DEBUG PROTOCOL true", "DEBUG PROTOCOL bignum", "DEBUG PROTOCOL verbatim", "DEBUG PROTOCOL push", "GET h"},
		[]string{"HSET h f 1: 1", "HGETALL h: map[f 1]", "GET none: nil", "ZADD z 1.5 a: 1", "ZSCORE z a: 1.5",
			"SADD s a: 1", "SMEMBERS s: set[a]",
			"DEBUG PROTOCOL true: t",
			"DEBUG PROTOCOL bignum: 1234567999999999999999999999999999999",
			"DEBUG PROTOCOL verbatim: txt:This is a verbatim\nstring",
			"DEBUG PROTOCOL push: Some real reply following the push reply", "GET h: -WRONGTYPE Operation against a " +
				"key holding the wrong kind of value"},
	},
	"scripts": {
		[]string{"EVAL return{1,KEYS[1],{'a'}} 1 k", "EVAL return{1,'" + long + "'} 0",
			"EVAL return{1,'" + long + "'} 0", "EVALSHA 0123456789012345678901234567890123456789 0"},
		[]string{"EVAL return{1,KEYS[1],{'a'}} 1 k: [1 k [a]]", "EVAL return{1,'" + long + "'} 0: [1 " + digest + "]",
			"EVAL return{1,'" + long + "'} 0: [1 " + digest + "]",
			"EVALSHA 0123456789012345678901234567890123456789 0: -NOSCRIPT No matching script. Please use EVAL."},
	},
	"transactions": {
		[]string{"MULTI", "SET a 1", "LPOP a", "GET a", "EXEC", "MULTI", "SET a 2", "DISCARD", "WATCH a", "SET a 3",
			"MULTI", "SET a 4", "EXEC",
			"MULTI", "NOSUCH", "SET a 5", "EXEC", "EXEC", "MULTI", "MULTI", "GET a", "EXEC"},
		[]string{"MULTI: OK", "SET a 1: OK", "LPOP a: -WRONGTYPE Operation against a key holding " +
			"the wrong kind of value", "GET a: 1",
			"EXEC: [OK -WRONGTYPE Operation against a key holding the wrong kind of value 1]", "MULTI: OK",
			"SET a 2: not executed", "DISCARD: OK",
			"WATCH a: OK", "SET a 3: OK", "MULTI: OK", "SET a 4: not executed", "EXEC: nil",
			"MULTI: OK", "NOSUCH: -ERR unknown command 'NOSUCH', with args beginning with: ", "SET a 5: not executed",
			"EXEC: -EXECABORT Transaction discarded because of previous errors.",
			"EXEC: -ERR EXEC without MULTI", "MULTI: OK",
			"MULTI: -ERR MULTI calls can not be nested", "GET a: 3", "EXEC: [3]"},
	},
	"databases": {
		[]string{"SELECT 1", "SET a 1", "SELECT 99", "SET a 2", "MULTI", "SELECT 2", "SET a 3", "EXEC", "SET a 4",
			"RESET", "GET a"},
		[]string{"SELECT 1: OK", "db1 SET a 1: OK", "db1 SELECT 99: -ERR DB index is out of range", "db1 SET a 2: OK",
			"db1 MULTI: OK",
			"db1 SELECT 2: OK", "db2 SET a 3: OK", "db2 EXEC: [OK OK]", "db2 SET a 4: OK",
			"db2 RESET: RESET", "GET a: nil"},
	},
	"secrets": {
		[]string{"ACL SETUSER joe on >geheim ~* +@all", "AUTH joe geheim", "GET a", "AUTH joe wrong", "GET a",
			"HELLO 2 AUTH joe geheim SETNAME x",
			"CONFIG SET masterauth geheim", "CONFIG GET masterauth", "ACL LIST", "CONFIG SET masterauth "},
		[]string{"ACL SETUSER *** *** *** *** ***: ", "GET a: nil", "GET a: nil", "CONFIG SET masterauth ***: OK",
			"CONFIG GET masterauth: []", "ACL LIST: []", "CONFIG SET masterauth ***: OK"},
	},
	"subscriber of RESP2": {
		[]string{"SUBSCRIBE a b", "PSUBSCRIBE a*", "PING", "PING x", "GET a", "UNSUBSCRIBE b", "UNSUBSCRIBE",
			"PUNSUBSCRIBE a*", "UNSUBSCRIBE", "PUBLISH a 1", "GET a"},
		[]string{"SUBSCRIBE a b: [subscribe b 2]", "PSUBSCRIBE a*: [psubscribe a* 3]", "PING: [pong ]",
			"PING x: [pong x]",
			"GET a: -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are " +
				"allowed in this context",
			"UNSUBSCRIBE b: [unsubscribe b 2]", "UNSUBSCRIBE: [unsubscribe a 1]",
			"PUNSUBSCRIBE a*: [punsubscribe a* 0]", "UNSUBSCRIBE: [unsubscribe nil 0]", "PUBLISH a 1: 0", "GET a: nil"},
	},
	"subscriber of RESP3": {
		[]string{"HELLO 3", "SUBSCRIBE a b", "PUBLISH a 1", "GET a", "SSUBSCRIBE s", "SPUBLISH s x", "UNSUBSCRIBE b",
			"UNSUBSCRIBE", "PUBLISH a 2", "SUNSUBSCRIBE s", "GET a"},
		[]string{"SUBSCRIBE a b: push[subscribe b 2]", "PUBLISH a 1: 1", "GET a: nil",
			"SSUBSCRIBE s: push[ssubscribe s 1]", "SPUBLISH s x: 1",
			"UNSUBSCRIBE b: push[unsubscribe b 1]", "UNSUBSCRIBE: push[unsubscribe a 0]", "PUBLISH a 2: 0",
			"SUNSUBSCRIBE s: push[sunsubscribe s 0]", "GET a: nil"},
	},
}

// A conversation is sent to the server itself, and through a proxy. Both must answer the same.
func TestConversations(t *testing.T) {
	for name, c := range conversations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := up(t, "--enable-debug-command", "yes")
			text := ""
			for _, line := range append(c.send, "ECHO end") {
				text += encode(line)
			}
			var answers [2]string
			for i, addr := range []string{b.proxy.Addr(), b.addr} {
				c := dial(t, addr)
				if _, err := io.WriteString(c, text); err != nil {
					t.Fatal(err)
				}
				answers[i] = anonymous.ReplaceAllString(until(t, c, "$3\r\nend\r\n"), ":N")
				d := dial(t, b.addr)
				_, _ = io.WriteString(d, "FLUSHALL\r\nACL DELUSER joe\r\nECHO end\r\n")
				until(t, d, "$3\r\nend\r\n")
			}
			if answers[0] != answers[1] {
				t.Errorf("through the proxy\n%q\nof the server\n%q", answers[0], answers[1])
			}
			got := b.lines()
			if last := len(got) - 1; last < 0 || !strings.HasSuffix(got[last], "ECHO end: end") ||
				!slices.Equal(got[:last], c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if all := fmt.Sprint(b.all()); strings.Contains(all, "geheim") {
				t.Errorf("a secret: %s", all)
			}
			if found := b.kinds(PassedThrough); len(found) > 0 {
				t.Errorf("not understood: %v", found)
			}
			b.consistent(t)
		})
	}
}

// anonymous hides the numbers of clients.
var anonymous = regexp.MustCompile(`(?s)(id\r\n):\d+`)

// all returns everything that was recorded, as text.
func (s *record) all() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		list = append(list, fmt.Sprintf("%+v", *r))
	}
	for _, e := range s.events {
		list = append(list, fmt.Sprintf("%+v", e))
	}
	return list
}

// consistent checks the rules that every record must meet.
func (s *record) consistent(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	type id struct{ conn, number int64 }
	sent, last := map[id]*Request{}, map[int64]int64{}
	for _, r := range s.sent {
		if r.Number != last[r.Conn]+1 || sent[id{r.Conn, r.Number}] != nil {
			t.Errorf("sent out of order: %+v", *r)
		}
		last[r.Conn], sent[id{r.Conn, r.Number}] = r.Number, r
	}
	for _, r := range s.requests {
		if from := sent[id{r.Conn, r.Number}]; from == nil || from.Call != r.Call {
			t.Errorf("answered, not sent: %+v", *r)
		}
		delete(sent, id{r.Conn, r.Number})
		if r.Return <= r.Call || r.Lost && r.Return != history.Forever {
			t.Errorf("returned at %v: %+v", r.Return, *r)
		}
	}
	for _, r := range sent {
		t.Errorf("sent, and never answered or lost: %+v", *r)
	}
}
