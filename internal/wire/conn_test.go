package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// certificate returns a self-signed certificate for this machine.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"redis.test"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// securedServer starts a server with TLS.
func securedServer(t *testing.T, c tls.Certificate) (addr, password string) {
	t.Helper()
	n := testbed.Up(t, "single", topologies.Options{}).Nodes[0]
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, _, _ := net.SplitHostPort(n.Addr())
	free, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	addr = free.Addr().String()
	_ = free.Close()
	testbed.Command(t, n, "CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", cert,
		"tls-auth-clients", "no",
		"tls-port", free.Addr().(*net.TCPAddr).Port)
	return addr, n.Password()
}

func TestSecuredServer(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	addr, password := securedServer(t, cert)
	sink := &record{}
	secured := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "redis.test", MinVersion: tls.VersionTLS12}}
	p := listen(t, &Run{Clock: history.NewOrderedClock(0), Sink: sink}, Endpoint{Listen: "127.0.0.1:0",
		Dial: func(ctx context.Context) (net.Conn, error) { return secured.DialContext(ctx, "tcp", addr) }})
	c := client(t, redis.Options{Addr: p.Addr(), Password: password})
	if err := c.Set(t.Context(), "k", strings.Repeat("x", 100_000), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := c.Get(t.Context(), "k").Val(); len(got) != 100_000 {
		t.Errorf("%d bytes came back", len(got))
	}
	if got := len(sink.lines()); got != 2 {
		t.Errorf("%d requests: %v", got, sink.lines())
	}
}

func TestBlockingCommands(t *testing.T) {
	t.Parallel()
	b := up(t)
	waiter, other := client(t, redis.Options{Addr: b.proxy.Addr()}), client(t, redis.Options{Addr: b.proxy.Addr()})
	got := make(chan string, 1)
	go func() { got <- fmt.Sprint(waiter.BLPop(t.Context(), 0, "q").Val()) }()
	live.Wait(t, "BLPOP waits", func() bool {
		return strings.Contains(other.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	other.RPush(t.Context(), "q", "x")
	if answer := <-got; answer != "[q x]" {
		t.Errorf("got %s", answer)
	}
	var push, pop *Request
	b.record.mu.Lock()
	defer b.record.mu.Unlock()
	for _, r := range b.requests {
		switch r.Args[0] {
		case "BLPOP":
			pop = r
		case "RPUSH":
			push = r
		}
	}
	if pop.Call > push.Call || pop.Return < push.Call || show(pop.Reply) != "[q x]" {
		t.Errorf("BLPOP from %v to %v: %s, RPUSH from %v", pop.Call, pop.Return, show(pop.Reply), push.Call)
	}
}

// A client that leaves while it waits must not take an element.
func TestBlockedClientGoes(t *testing.T) {
	t.Parallel()
	b := up(t)
	other := client(t, redis.Options{Network: "unix", Addr: b.addr})
	blocked := func(n int) func() bool {
		return func() bool {
			return strings.Contains(other.Info(t.Context(), "clients").Val(), fmt.Sprintf("blocked_clients:%d\r", n))
		}
	}
	c := dial(t, b.proxy.Addr())
	_, _ = io.WriteString(c, encode("BLPOP q 0"))
	live.Wait(t, "it waits", blocked(1))
	_ = c.Close()
	live.Wait(t, "the server knows that it has gone", blocked(0))
	live.Wait(t, "its request is lost", func() bool { return len(b.lines()) == 1 })
	if got := b.lines()[0]; got != "BLPOP q 0: unseen (lost)" {
		t.Error(got)
	}
}

// Some commands change the connection in a way that replies do not show. Later bytes are passed on unparsed, and that
// is reported.
func TestWhatIsNotUnderstoodIsPassedThrough(t *testing.T) {
	t.Parallel()
	for why, send := range map[string]string{
		"CLIENT REPLY": encode("CLIENT REPLY OFF") + encode("SET a 2") + encode("CLIENT REPLY ON"),
		"a subscription is queued in a transaction": encode("MULTI") + encode("SUBSCRIBE a") + encode("RESET"),
		"a request is not RESP":                     "SET a \"b c\"\r\n",
	} {
		b := up(t)
		c := dial(t, b.proxy.Addr())
		_, _ = io.WriteString(c, encode("SET a 1")+send+encode("ECHO end"))
		until(t, c, "$3\r\nend\r\n")
		if events := b.kinds(PassedThrough); len(events) != 1 || events[0].Text != why ||
			b.lines()[0] != "SET a 1: OK" {
			t.Errorf("%s: %v, %v", why, events, b.lines())
		}
		_ = c.Close()
		ends(t, b.proxy)
		b.consistent(t)
	}
}

func TestMonitorIsPassedThrough(t *testing.T) {
	t.Parallel()
	b := up(t)
	c := dial(t, b.proxy.Addr())
	_, _ = io.WriteString(c, encode("SET a 1")+encode("MONITOR"))
	until(t, c, "+OK\r\n+OK\r\n")
	d := dial(t, b.addr)
	_, _ = io.WriteString(d, encode("SET b 2"))
	until(t, c, "\"SET\" \"b\" \"2\"\r\n")
	if events := b.kinds(PassedThrough); len(events) != 1 || events[0].Text != "MONITOR" {
		t.Errorf("%v", events)
	}
	_ = c.Close()
	ends(t, b.proxy)
	b.consistent(t)
}

// A replica of the server is behind a proxy: its snapshot and stream pass.
func TestReplicationIsPassedThrough(t *testing.T) {
	t.Parallel()
	b := up(t)
	direct := client(t, redis.Options{Network: "unix", Addr: b.addr})
	direct.Set(t.Context(), "before", strings.Repeat("x", 1<<20), 0)
	host, port, _ := net.SplitHostPort(b.proxy.Addr())
	addr, _ := start(t, "--replicaof", host+" "+port)
	replica := client(t, redis.Options{Network: "unix", Addr: addr})
	live.Wait(t, "it has the snapshot", func() bool { return replica.StrLen(t.Context(), "before").Val() == 1<<20 })
	direct.Set(t.Context(), "after", "y", 0)
	live.Wait(t, "it has the stream", func() bool { return replica.Get(t.Context(), "after").Val() == "y" })
	if events := b.kinds(PassedThrough); len(events) != 1 || events[0].Text != "PSYNC" {
		t.Errorf("%v", events)
	}
}

// Commands in flight are lost when the server is killed.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	b := &behind{record: &record{}}
	addr, end := start(t)
	b.run = &Run{Clock: history.NewOrderedClock(0), Sink: b.record}
	b.proxy = listen(t, b.run, Endpoint{Server: 7, Listen: "127.0.0.1:0", Dial: dialler(addr)})
	c := dial(t, b.proxy.Addr())
	_, _ = io.WriteString(c, encode("SET a 1")+encode("MULTI")+encode("SET a 2")+encode("BLPOP q 0"))
	until(t, c, "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n")
	d := dial(t, b.proxy.Addr())
	_, _ = io.WriteString(d, encode("BLPOP q 0"))
	live.Wait(t, "it has been sent", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.sent) == 5 })
	end()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the client does not see that the server has ended")
	}
	_, _ = c.Close(), d.Close()
	ends(t, b.proxy)
	lost := 0
	for _, line := range b.lines() {
		if strings.HasSuffix(line, "unseen (lost)") {
			lost++
		}
	}
	if lost != 3 {
		t.Errorf("%d lost: %v", lost, b.lines())
	}
	b.consistent(t)
	if r := b.requests[0]; r.Server != 7 {
		t.Errorf("server %d", r.Server)
	}
	if e, err := net.Dial("tcp", b.proxy.Addr()); err == nil { // it may be reset before it is established
		defer e.Close()
		if _, err := e.Read(make([]byte, 1)); err == nil {
			t.Error("no server, and an answer")
		}
	}
	ends(t, b.proxy)
}

// TestBreaks tries each way to break the second grant of a lock.
func TestBreaks(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	for name, c := range map[string]struct {
		do   Action
		lost bool
	}{
		"drop":   {Action{Drop: true}, true},
		"cut":    {Action{Cut: true}, true},
		"delay":  {Action{Delay: 30 * time.Millisecond}, false},
		"call":   {Action{Call: func() { calls.Add(1) }}, false},
		"refuse": {Action{Refuse: "OOM command not allowed"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := up(t)
			var met atomic.Int64
			breaks := func(r *Request) *Action {
				asked := name == "refuse"
				if r.Args[0] == "SET" && r.Args[2] != "b" && asked == (r.Return == 0) && met.Add(1) == 2 {
					return &c.do
				}
				return nil
			}
			p := listen(t, b.run, Endpoint{Listen: "127.0.0.1:0", Dial: dialler(b.addr), Break: breaks})
			con := dial(t, p.Addr())
			_, _ = io.WriteString(con, encode("SET lock a NX")+encode("SET lock b NX")+encode("DEL lock")+
				encode("SET lock c NX")+encode("ECHO end"))
			want, reply := "+OK\r\n$-1\r\n:1\r\n", "OK"
			switch {
			case name == "refuse":
				want, reply = want+"-OOM command not allowed\r\n$3\r\nend\r\n", "-OOM command not allowed"
			case !c.lost:
				want += "+OK\r\n$3\r\nend\r\n"
			}
			if got := until(t, con, want); got != want {
				t.Errorf("got %q", got)
			}
			live.Wait(t, "all is answered or lost", func() bool { return len(b.lines()) == 5 })
			if c.lost {
				_ = con.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				if n, err := con.Read(make([]byte, 10)); n > 0 || err == nil || name == "drop" && !os.IsTimeout(err) {
					t.Errorf("%d bytes, %v", n, err)
				}
			}
			b.consistent(t)
			r := b.request(3)
			if r.Lost != c.lost || show(r.Reply) != reply || name == "delay" && r.Return < r.Call+30*time.Millisecond {
				t.Errorf("the second grant: %+v", *r)
			}
			if name == "call" && calls.Load() != 1 {
				t.Errorf("called %d times", calls.Load())
			}
			server := client(t, redis.Options{Network: "unix", Addr: b.addr})
			if held := server.Exists(t.Context(), "lock").Val(); (held == 0) != (name == "refuse") {
				t.Errorf("%d locks are held", held)
			}
		})
	}
}

// request returns one of the recorded requests.
func (b *behind) request(n int) *Request {
	b.record.mu.Lock()
	defer b.record.mu.Unlock()
	return b.requests[n]
}
