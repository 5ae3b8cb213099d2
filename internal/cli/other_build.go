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

// programTimeout is the longest time that another build may take to end after SIGTERM.
const programTimeout = 20 * time.Second

// runProgram makes a run in a separate process of bench, with the given arguments. It uses the side's build, or this
// build if the side names none.
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
			_ = cmd.Process.Signal(syscall.SIGINT) // an error does not matter: it may have ended
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
