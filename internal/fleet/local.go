package fleet

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"hammerlock/internal/crew"
)

// child is an agent that the coordinator has started.
type child struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// start starts an agent on this machine. It reads the token from its input, and ends when the input does.
func (f *Fleet) start(number int, spawn crew.Spawn) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "agent", "--join", f.Address(), "--name", fmt.Sprintf("local-%d", number+1),
		"--token-file", "-", "--quiet")
	cmd.Stderr = says(f.o.Say)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := spawn(cmd); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(input, f.o.Token)
	return &child{cmd, input}, err
}

// says passes on lines in which a local agent reports problems.
type says func(string)

// Write implements io.Writer.
func (s says) Write(b []byte) (int, error) {
	s(strings.TrimSpace(string(b)))
	return len(b), nil
}

// childTimeout is how long a local agent may take to end.
const childTimeout = 5 * time.Second

func (c *child) end() {
	_ = c.input.Close() // this makes it end
	timer := time.AfterFunc(childTimeout, func() { _ = c.cmd.Process.Kill() })
	_ = c.cmd.Wait() // the error is ignored: the agent has reported its problems
	timer.Stop()
}
