package explore

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/locks"
)

// TestLiveModelIsLikeRedis sends the requests of correct locks to a real server, in the same order and on as many
// connections. It compares the replies with those of the server in memory. The leases are too long to end. With
// -short only some locks are tested.
func TestLiveModelIsLikeRedis(t *testing.T) {
	for _, spec := range explorable(false) {
		if testing.Short() && !slices.Contains([]string{"lease", "watch", "reentrant"}, spec.Name) {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			if strings.HasPrefix(spec.Name, "handoff") {
				t.Skip("its scripts ask who listens, and here nobody does")
			}
			o := suited(spec, 0)
			o.Sites, o.TTL, o.Hold = 1, time.Minute, time.Second
			s, err := play(t, spec, &o, newKit(), nil, nil, true, nil)
			if err != nil || s.wrong != nil {
				t.Fatal(err, s.wrong)
			}
			compareWithRedis(t, spec, s.w.trace.exchanges)
		})
	}
}

func compareWithRedis(t *testing.T, spec locks.Spec, exchanges []*exchange) {
	t.Helper()
	socket := realServer(t)
	type connection struct {
		net.Conn
		in *bufio.Reader
	}
	connections := map[*link]connection{}
	for i, x := range exchanges {
		if setUp[x.words[0]] {
			continue
		}
		c, ok := connections[x.link]
		if !ok {
			dialled, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dialled.Close() })
			c = connection{dialled, bufio.NewReader(dialled)}
			connections[x.link] = c
		}
		if _, err := c.Write(command(x.words)); err != nil {
			t.Fatal(err)
		}
		f, err := readFrame(c)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.words, x.answer) && !nearly(f.words, x.answer) {
			t.Errorf("%s, command %d: %q: Redis answers %q, the model %q", spec.Name, i, x.words, f.words, x.answer)
		}
	}
	if len(connections) == 0 {
		t.Error("nothing was sent")
	}
}

// nearly tells whether both replies are the rest of a lease.
func nearly(a, b []string) bool {
	if len(a) != 1 || len(b) != 1 {
		return false
	}
	x, err := strconv.Atoi(a[0])
	y, failed := strconv.Atoi(b[0])
	return err == nil && failed == nil && min(x, y) > 1000
}

// realServer starts a redis-server that ends with the test.
func realServer(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	server := exec.CommandContext(t.Context(), "redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
	live.Wait(t, "a redis-server that listens", func() bool {
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	return socket
}

// readFrame reads one value of RESP 2, and no more.
func readFrame(r io.Reader) (frame, error) {
	var b []byte
	for some := make([]byte, 512); ; {
		n, err := r.Read(some)
		b = append(b, some[:n]...)
		if f, whole := cut(&b); whole || err != nil {
			return f, err
		}
	}
}

// command makes a request of words.
func command(words []string) []byte {
	b := strconv.AppendInt([]byte("*"), int64(len(words)), 10)
	for _, w := range words {
		b = strconv.AppendInt(append(b, "\r\n$"...), int64(len(w)), 10)
		b = append(append(b, "\r\n"...), w...)
	}
	return append(b, "\r\n"...)
}
