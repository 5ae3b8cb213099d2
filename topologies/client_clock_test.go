package topologies

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAProgramSeesTheClockThatItIsGiven, from its start, and after a change.
func TestAProgramSeesTheClockThatItIsGiven(t *testing.T) {
	t.Parallel()
	if why := NoClientClock(); why != "" {
		t.Fatal(why)
	}
	c, err := up(t, "single", Options{}).ClientClock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set(1, 0); err != nil {
		t.Fatal(err)
	}
	if read, err := c.Read(1); err != nil || read {
		t.Errorf("it was read before a program began: %v", err)
	}
	for i, offset := range []time.Duration{time.Hour, -time.Hour, 0} {
		if err := c.Set(int64(i+1), offset); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("date", "+%s")
		cmd.Env = append(os.Environ(), c.Env()...)
		text, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if read, err := c.Read(int64(i + 1)); err != nil || !read {
			t.Errorf("set to %v, it was not read: %v", offset, err)
		}
		if off := time.Until(time.Unix(seconds, 0)) - offset; err != nil || off.Abs() > 30*time.Second {
			t.Errorf("set to %v, it is off by %v: %v", offset, off, err)
		}
	}
}
