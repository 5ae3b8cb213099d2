package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
)

// abProgram is the name of the setting that runs a side with another build of "bench", as in bench=base/bench.
const abProgram = "bench"

type side struct {
	name    string
	program string // path of another build of bench; empty = this build
	o       *options
}

// newSide makes one side of a comparison. It starts with the common options, and then applies the text, which has
// settings such as "lock=redsync,backoff=1ms". Each function in the list more declares one more flag that the text
// may set, and returns the flag's name.
func newSide(common *options, text string, more ...func(*options) string) *side {
	s := &side{name: text, o: &options{Set: settings.New(), plan: common.plan}}
	if own := common.plan.Service; own != nil {
		s.o.plan.Service = own.Clone()
	}
	s.o.planFlags()
	good := settings.Having(s.o.Flags, ofPlan)
	for _, add := range more {
		good = append(good, add(s.o))
	}
	for _, part := range ofSide(text) {
		name, v, ok := strings.Cut(part, "=")
		name = strings.TrimPrefix(name, "--")
		name = settings.Current(name)
		switch {
		case !ok || name == "":
			s.o.Mistake("", "%q: settings are NAME=VALUE with commas in between, as in lock=redsync,backoff=1ms", text)
		case name == abProgram && s.o.plan.Service == nil:
			s.program = v
		case !slices.Contains(good, name):
			s.o.Mistake("", "%q: no such setting of one side%s", name,
				cmp.Or(human.Meant(name, good), "; bench plan prints all that there are"))
		default:
			_ = s.o.Flags.Set(name, v) // an error in the value is collected
		}
	}
	return s
}

// ofSide splits a text such as "lock=lease,spin,backoff=1ms". A part without "=", such as spin, belongs to the value
// before it.
func ofSide(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ",") {
		if len(parts) > 0 && !strings.Contains(part, "=") {
			parts[len(parts)-1] += "," + part
			continue
		}
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}

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

// programTimeout is the time after SIGTERM at which another build of bench is killed.
const programTimeout = 20 * time.Second
