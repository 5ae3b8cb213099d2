package wire

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// heap returns the memory in use, in MB.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// send writes as much as possible, because a server may close the connection during that.
func send(text string) func(*testing.T, net.Conn) {
	return func(_ *testing.T, c net.Conn) { _, _ = io.WriteString(c, text) }
}

// times writes a text a number of times.
func times(n int, text string) func(*testing.T, net.Conn) {
	return func(_ *testing.T, c net.Conn) {
		block := []byte(strings.Repeat(text, 1000))
		for range n / 1000 {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	}
}

// misbehave are clients that break the rules in many ways. Other clients are still served.
var misbehave = map[string]func(*testing.T, net.Conn){
	"nothing":                     func(*testing.T, net.Conn) {},
	"half a length":               send("*3\r\n$3"),
	"half a command":              send("*3\r\n$3\r\nSET\r\n$1\r\n"),
	"half a bulk":                 send("*2\r\n$4\r\nECHO\r\n$100\r\nx"),
	"half a line":                 send("PING"),
	"a command, then half of one": send("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI"),
	"no number of arguments":      send("*x\r\n"),
	"too many arguments":          send("*99999999999999999999\r\n"),
	"as many arguments as can be": send("*2147483647\r\n$1\r\nx\r\n"),
	"a million arguments": func(t *testing.T, c net.Conn) {
		send("*1000001\r\n$3\r\nDEL\r\n")(t, c)
		times(1_000_000, "$1\r\nx\r\n")(t, c)
	},
	"a negative bulk":           send("*1\r\n$-5\r\n"),
	"a bulk too large":          send("*1\r\n$99999999999999999\r\n"),
	"a bulk of half a gigabyte": send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870911\r\nx"),
	"a huge bulk": func(t *testing.T, c net.Conn) {
		send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$64000000\r\n")(t, c)
		times(64_000_000, "x")(t, c)
	},
	"no bulk":                send("*1\r\n:1\r\n"),
	"a bulk that goes on":    send("*1\r\n$4\r\nPINGPONG\r\n*1\r\n$4\r\nPING\r\n"),
	"newlines only":          times(100_000, "\r\n"),
	"empty commands":         times(100_000, "*0\r\n"),
	"a line without end":     times(1_000_000, "x"),
	"quotes that do not end": send("SET \"a b\r\n"),
	"zeros":                  send(strings.Repeat("\x00", 100_000)),
	"HTTP":                   send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	"TLS":                    send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
	"a reply":                send("+OK\r\n$3\r\nabc\r\n"),
	"MULTI without end": func(t *testing.T, c net.Conn) {
		send(encode("MULTI"))(t, c)
		times(100_000, encode("GET a"))(t, c)
	},
	"subscriptions":               times(20_000, encode("SUBSCRIBE a b c")),
	"a flood, nothing read":       times(300_000, encode("GET a")),
	"a flood of turns":            times(300_000, encode("SELECT 0")+encode("GET a")),
	"large replies, nothing read": func(t *testing.T, c net.Conn) { times(2000, encode("GET large"))(t, c) },
	"hangs up after a command": func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, encode("GET a"))
		_ = c.Close()
	},
	"hangs up with a reset": func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, encode("GET large"))
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	},
	"closes its half, then nothing": func(_ *testing.T, c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
}

// It measures memory, so no other test runs beside it.
func TestClientsThatMisbehave(t *testing.T) {
	if len(misbehave) < 30 {
		t.Errorf("%d clients", len(misbehave))
	}
	addr, _ := start(t)
	d := dial(t, addr)
	_, _ = io.WriteString(d, encode("SET large "+strings.Repeat("x", 100_000)))
	until(t, d, "+OK\r\n")
	run := &Run{Clock: history.NewOrderedClock(0), Sink: nothing{}}
	p := listen(t, run, Endpoint{Listen: "127.0.0.1:0", Dial: dialler(addr)})
	before, most := heap(), 0.0
	for name, client := range misbehave {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second)) // the server may have stopped reading
		client(t, c)
		other := dial(t, p.Addr())
		if _, err := io.WriteString(other, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := until(t, other, "+PONG\r\n"); got != "+PONG\r\n" {
			t.Errorf("%s: others are answered %q", name, got)
		}
		used := heap() - before
		if most = max(most, used); used > 64 {
			t.Errorf("%s: %.0f MB in use", name, used)
		}
		_, _ = c.Close(), other.Close()
	}
	ends(t, p)
	if used := heap() - before; used > 4 {
		t.Errorf("%.1f MB are left", used)
	}
	t.Logf("%.1f MB at most", most)
}

// A client that reads only after it has written everything gets the same answers through a proxy as without one,
// for any amount of data.
func TestAFloodIsAnswered(t *testing.T) {
	t.Parallel()
	const n = 200_000 // more than fits into sockets, and more than is kept
	b := up(t)
	c := dial(t, b.proxy.Addr())
	_, _ = io.WriteString(c, encode("SET large "+strings.Repeat("x", 300)))
	until(t, c, "+OK\r\n")
	block := []byte(strings.Repeat(encode("GET large"), 1000))
	for range n / 1000 {
		if _, err := c.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.CopyN(io.Discard, c, n*int64(len("$300\r\n")+302)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, encode("GET a"))
	until(t, c, "$-1\r\n")
	events, kept := b.kinds(PassedThrough), len(b.lines())
	if len(events) != 1 || events[0].Text != "too many commands are in flight" || kept < 20_000 || kept >= n {
		t.Errorf("%d recorded, %v", kept, events)
	}
}

// TestServersThatMisbehave: malformed replies of a server reach the client unchanged.
func TestServersThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"no reply type":                 "?what\r\n+OK\r\n",
		"no line end":                   "+OK\n+OK\r\n",
		"a bad length":                  "$x\r\n",
		"a bad number":                  ":one\r\n",
		"a reply too many":              "+OK\r\n+OK\r\n+OK\r\n",
		"an error before all":           "-ERR max number of clients reached\r\n",
		"half a reply":                  "+OK\r\n$10\r\nabc",
		"half an aggregate":             "*1000000\r\n+a\r\n",
		"a very deep reply":             strings.Repeat("*1\r\n", 100_000),
		"a line without end":            "+" + strings.Repeat("x", 200_000),
		"a large reply":                 "$3000000\r\n" + strings.Repeat("x", 3_000_000) + "\r\n+OK\r\n",
		"many items":                    "*300000\r\n" + strings.Repeat(":1\r\n", 300_000) + "+OK\r\n",
		"attributes without end":        strings.Repeat("|1\r\n+a\r\n+b\r\n", 100_000),
		"pieces without end":            "$?\r\n" + strings.Repeat(";1\r\nx\r\n", 100_000),
		"an unending aggregate":         "*?\r\n" + strings.Repeat("+a\r\n", 100_000),
		"an end without a start":        ".\r\n;1\r\nx\r\n",
		"pushes without a subscription": strings.Repeat(">2\r\n+invalidate\r\n*1\r\n+k\r\n", 1000) + "+OK\r\n+OK\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			sink := &record{}
			p := listen(t, &Run{Clock: history.NewOrderedClock(0), Sink: sink},
				Endpoint{Listen: "127.0.0.1:0", Dial: dialler(l.Addr().String())})
			c := dial(t, p.Addr())
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			asked := encode("SET k v") + encode("GET k")
			_, _ = io.WriteString(c, asked)
			if _, err := io.ReadFull(s, make([]byte, len(asked))); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.WriteString(s, says)
				_ = s.Close()
			}()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, []byte(says)) {
				t.Errorf("%d of %d bytes came through: %v", len(got), len(says), err)
			}
			_ = c.Close()
			ends(t, p)
			sink.consistent(t)
			if n := len(sink.lines()); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
