package topologies

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestChild: processes that a program has started end with it, even if they have left the group or ignore a signal.
func TestChild(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		end    func(*Child) error
	}{
		"ended":   {"sleep 1000 & echo $!", func(c *Child) error { <-c.Ended(); return nil }},
		"stopped": {"sleep 1000 & echo $!; wait", func(c *Child) error { return c.Stop(time.Minute) }},
		"stubborn": {"trap '' TERM; sleep 1000 & echo $!; wait; wait",
			func(c *Child) error { return c.Stop(time.Millisecond) }},
		"killed": {"sleep 1000 & echo $!; wait", (*Child).Kill},
		"apart":  {"setsid sleep 1000 & echo $!; wait", (*Child).Kill},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", test.script)
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = out.Close() }()
			cmd.Stdout = in
			c, err := Launch(cmd)
			if err != nil {
				t.Fatal(err)
			}
			_ = in.Close() // the program has a copy
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			started, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || syscall.Kill(started, 0) != nil && name != "ended" {
				t.Fatalf("the program has started nothing: %q", line)
			}
			if err := test.end(c); err != nil || c.Alive() {
				t.Errorf("it lives on: %v", err)
			}
			if name == "apart" { // Close ends this process
				defer pidGone(t, started)
			} else {
				pidGone(t, started)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func pidGone(t *testing.T, pid int) {
	t.Helper()
	for late := time.After(10 * time.Second); parentOf(pid) > 0; {
		select {
		case <-late:
			t.Fatalf("process %d lives on", pid)
		case <-time.After(time.Millisecond):
		}
	}
}
