package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// TestLiveWireOfLargeAnswers: a reply of any size reaches the program, and a snapshot of any size is skipped.
func TestLiveWireOfLargeAnswers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Fatal(err)
	}
	const bytes, members = 70_000_000, 1_100_000
	s := testbed.Up(t, "single", topologies.Options{}).Sites[0]
	a := s.Access()
	c := redis.NewClient(&redis.Options{Addr: a.Addrs[0], Password: a.Password, ReadTimeout: -1})
	defer func() { _ = c.Close() }()
	for _, err := range []error{
		c.ConfigSet(t.Context(), "rdbcompression", "no").Err(),
		c.SetRange(t.Context(), "large", bytes-1, "x").Err(),
		c.Eval(t.Context(), "for i = 1, ARGV[1] do redis.call('sadd', KEYS[1], i) end return 1",
			[]string{"many"}, members).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const program = `
		c() { REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -h "${REDIS_NODES%:*}" -p "${REDIS_NODES##*:}" "$@"; }
		c set lock:a 1 nx px 60000; c get large | wc -c; c smembers many | wc -l; c del lock:a`
	var stdout, stderr lockedBuffer
	out := t.TempDir()
	code := Verify(t.Context(), Env{Args: []string{"wire", "--to", "redis://:" + a.Password + "@" + a.Addrs[0],
		"--locks", "lock:*", "--listen", "127.0.0.1:0",
		"--out", out, "--tui", "off", "--", "sh", "-c", "(" + program + ") > " + out + "/said 2>&1"},
		Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	said, _ := os.ReadFile(out + "/said")
	if got := strings.Join(strings.Fields(string(said)), " "); got != "OK 70000001 1100000 1" || code != Inconclusive {
		t.Errorf("exit %d, the program printed %q\n%s%s", code, got, stdout.String(), stderr.String())
	}
	if text := stdout.String(); !strings.Contains(text, "1 grant · 1 release") ||
		strings.Contains(text, "the stream broke") ||
		strings.Contains(text, "refuses a tap") || strings.Contains(text, "only requests and answers told") {
		t.Errorf("the tap did not see it:\n%s%s", text, stderr.String())
	}
}
