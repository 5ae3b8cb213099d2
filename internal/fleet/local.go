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

// start starts an agent on this machine. The agent reads the token from its standard input, and ends when that input
// ends.
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

// says is an io.Writer for the problems that a local agent reports.
type says func(string)

func (s says) Write(b []byte) (int, error) {
	s(strings.TrimSpace(string(b)))
	return len(b), nil
}

// childTimeout is the longest time that a local agent may take to end.
const childTimeout = 5 * time.Second

func (c *child) end() {
	_ = c.input.Close() // the agent ends when its input ends
	timer := time.AfterFunc(childTimeout, func() { _ = c.cmd.Process.Kill() })
	_ = c.cmd.Wait() // an error does not matter: the agent has reported its problems
	timer.Stop()
}
