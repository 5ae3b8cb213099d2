package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"hammerlock/results"
)

// programTimeout is the time after SIGTERM at which another build of bench is killed.
const programTimeout = 20 * time.Second

// runProgram makes a run in a separate process of bench, with the given arguments. The process runs the build of the
// side or, if it has none, the build of this process.
func (s *side) runProgram(ctx, stop context.Context, args []string) (*results.Run, error) {
	program := s.program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	secrets, err := s.o.plan.Attach.Secrets.Environ()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--json", "--quiet")...)
	cmd.Env = append(cmd.Environ(), secrets...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = programTimeout
	defer context.AfterFunc(stop, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Signal(syscall.SIGINT) // an error does not matter: the process may have ended
		}
	})()
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	var d Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) != 1 {
		return nil, fmt.Errorf("%s: exit code %d and no run: %s", program, cmd.ProcessState.ExitCode(),
			strings.TrimSpace(stderr.String()))
	}
	return &d.Runs[0], nil
}
