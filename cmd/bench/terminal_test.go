package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"hammerlock/internal/live"
	"hammerlock/internal/scripts"
	"hammerlock/results"
)

// seat is a person at a terminal in which a program runs.
type seat struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File
	out    string
	before unix.Termios

	mu   sync.Mutex
	seen bytes.Buffer
	done chan struct{}
}

// needTerminals skips a test where nobody could have a terminal, as in a container without devpts.
func needTerminals(t *testing.T) {
	t.Helper()
	master, tty, err := pty.Open()
	for _, none := range []error{unix.ENOENT, unix.ENODEV, unix.ENXIO, unix.EACCES, unix.EPERM} {
		if errors.Is(err, none) {
			t.Skipf("this machine has no pseudo-terminals (is devpts mounted?): %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(master.Close(), tty.Close()); err != nil {
		t.Fatal(err)
	}
}

// sit starts a program in a terminal of that size.
func sit(t *testing.T, w, h uint16, env []string, program string, args ...string) *seat {
	t.Helper()
	needTerminals(t)
	scripts.HearHangups()
	s := &seat{t: t, cmd: exec.Command(program, args...), out: t.TempDir(), done: make(chan struct{})}
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "CI=", "NO_COLOR=", "TMPDIR="+
		s.out, "PS1=$ "), env...)
	s.cmd.Dir = s.out
	tty, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s.tty = tty
	s.before = s.settings() // before the program changes them
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = terminal, terminal, terminal
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(pty.Setsize(tty, &pty.Winsize{Rows: h, Cols: w}), s.cmd.Start(),
		terminal.Close()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		chunk := make([]byte, 4096)
		for {
			n, err := tty.Read(chunk)
			s.mu.Lock()
			s.seen.Write(chunk[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = tty.Close()
		<-s.done
	})
	return s
}

func (s *seat) settings() unix.Termios {
	s.t.Helper()
	got, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *got
}

func (s *seat) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

func (s *seat) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Reset()
}

// sees waits until something was written.
func (s *seat) sees(text string) {
	s.t.Helper()
	s.wait(text, func() bool { return strings.Contains(s.text(), text) })
}

// wait waits until the terminal shows a state, and says what it showed instead.
func (s *seat) wait(what string, reached func() bool) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the terminal shows %q", s.text())
		}
	}()
	live.Wait(s.t, what, reached)
}

func (s *seat) types(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// leaves waits for the program's end, and wants its exit code and the terminal as it was.
func (s *seat) leaves(code int) {
	s.t.Helper()
	ended := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(2 * live.Deadline):
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // the runtime says where it stands
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
		}
		text := s.text()
		s.t.Fatalf("did not end: %s", text[max(len(text)-20_000, 0):])
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d: %q", got, code, s.text())
	}
	s.isRestored()
}

const leaveScreen = "\x1b[?1049l"

func (s *seat) isRestored() {
	s.t.Helper()
	s.sees(leaveScreen)
	s.wait("the terminal as it was", func() bool { return s.settings() == s.before })
}

func (s *seat) run() *results.Run {
	s.t.Helper()
	r, err := results.ReadRun(filepath.Join(s.out, "runs", "latest"))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

var long = []string{"--topology", "single", "--workers", "4", "--backoff", "10ms", "--warmup", "0s", "--duration",
	"10m", "--out", "runs"}

const panels = "who holds the lock"

// proved is what the dashboard says when a second of visits is judged.
var proved = regexp.MustCompile(`proved up to [1-9]`)

func TestTerminalQuit(t *testing.T) {
	t.Parallel()
	program := build(t)
	for name, keys := range map[string]string{"q": "q", "ctrl-c": "\x03"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, 100, 30, nil, program, long...)
			s.sees(panels)
			s.wait("that visits are proved", func() bool { return proved.MatchString(s.text()) })
			s.types(keys)
			s.leaves(130)
			s.sees("repeat ")
			after := s.text()[strings.LastIndex(s.text(), leaveScreen):]
			if !strings.Contains(after, "the run ended early: ended by a key") ||
				!strings.Contains(after, "throughput") {
				t.Errorf("after the dashboard came %q", after)
			}
			if r := s.run(); r.Partial == "" || r.Interactive || r.Visits.Done == 0 {
				t.Errorf("saved %+v", r)
			}
		})
	}
}

// TestTerminalQuitTwice does not wait for visits that take minutes.
func TestTerminalQuitTwice(t *testing.T) {
	t.Parallel()
	s := sit(t, 100, 30, nil, build(t), append(long, "--hold", "9m", "--lease", "2h", "--patience", "2h")...)
	s.sees(panels)
	s.sees("holds ")
	s.types("q")
	s.sees("q again stops at once")
	s.types("q")
	s.leaves(130)
}

func TestTerminalResize(t *testing.T) {
	t.Parallel()
	s := sit(t, 100, 30, nil, build(t), long...)
	s.sees(panels)
	for i := range 50 {
		size := &pty.Winsize{Cols: uint16(30 + i*13%150), Rows: uint16(8 + i*7%50)}
		if err := pty.Setsize(s.tty, size); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
	if err := pty.Setsize(s.tty, &pty.Winsize{Cols: 60, Rows: 12}); err != nil {
		t.Fatal(err)
	}
	s.sees("60 x 12; panels need 80 x 24")
	s.forget()
	if err := pty.Setsize(s.tty, &pty.Winsize{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	s.sees(panels)
	s.types("q")
	s.leaves(130)
}

// TestTerminalSuspend suspends the command under a shell with job control and brings it back.
func TestTerminalSuspend(t *testing.T) {
	t.Parallel()
	s := sit(t, 100, 30, nil, "/bin/sh", "-i")
	s.sees("$ ")
	s.types(build(t) + " " + strings.Join(long, " ") + "\n")
	s.sees("proved up to")
	s.forget()
	s.types("\x1a")
	s.sees(leaveScreen)
	s.sees("topped")
	s.types("echo back$((40 + 2))\n")
	s.sees("back42")
	s.forget()
	s.types("fg; echo code=$?\n")
	s.sees(panels)
	s.types("q")
	s.sees("code=130")
	s.sees(leaveScreen)
	s.types("exit\n")
	r := s.run()
	if !r.Interactive {
		t.Error("a suspended run is not marked as interactive")
	}
}

// TestTerminalSurvivesUs: whatever ends the program, the terminal is as it was. A crash leaves its words.
func TestTerminalSurvivesUs(t *testing.T) {
	t.Parallel()
	program := build(t)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGQUIT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			// A terminal goes away with the first process of its session: as everywhere, that is a shell.
			s := sit(t, 100, 30, nil, "/bin/sh", "-c", program+" "+strings.Join(long, " ")+" & echo pid=$!. "+
				">&2; wait $!; read line")
			s.sees("proved up to")
			_, after, _ := strings.Cut(s.text(), "pid=")
			number, _, _ := strings.Cut(after, ".")
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, signal); err != nil {
				t.Fatal(err)
			}
			s.isRestored()
			if signal == syscall.SIGQUIT {
				s.wait("a crash that is told", func() bool {
					_, after, _ := strings.Cut(s.text(), leaveScreen)
					return strings.Contains(after, "goroutine ")
				})
			}
			// it saves the run after that
			s.wait("that it is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		})
	}
}

// TestTerminalHangup takes the terminal away: the run is saved.
func TestTerminalHangup(t *testing.T) {
	t.Parallel()
	s := sit(t, 100, 30, nil, build(t), long...)
	s.sees("proved up to")
	if err := s.tty.Close(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 129 {
		t.Errorf("exit code %d, want 129: %q", code, s.text())
	}
	if r := s.run(); r.Partial != "interrupted by SIGHUP" || r.Visits.Done == 0 {
		t.Errorf("saved %+v", r)
	}
}

// TestTerminalPlain: where a dashboard makes no sense there are lines.
func TestTerminalPlain(t *testing.T) {
	t.Parallel()
	program := build(t)
	short := []string{"--topology", "single", "--workers", "4", "--backoff", "10ms", "--warmup", "0s", "--duration",
		"500ms", "--out", "runs"}
	for name, tt := range map[string]struct {
		w, h uint16
		env  []string
		args []string
	}{
		"small": {60, 20, nil, nil}, "dumb": {100, 30, []string{"TERM=dumb"}, nil},
		"ci":  {100, 30, []string{"CI=true"}, nil},
		"off": {100, 30, nil, []string{"--tui", "off"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, tt.w, tt.h, tt.env, program, append(short, tt.args...)...)
			_ = s.cmd.Wait()
			s.sees("single lease: saved runs")
			if text := s.text(); strings.Contains(text, "\x1b") {
				t.Errorf("got %q", text)
			}
		})
	}
}

// TestTerminalLooks: no colour where none is wanted, and no letters that the locale has not.
func TestTerminalLooks(t *testing.T) {
	t.Parallel()
	program := build(t)
	s := sit(t, 100, 30, []string{"NO_COLOR=1", "LC_ALL=C"}, program, append(long, "--lock", "none")...)
	s.sees("VIOLATED")
	s.types("q")
	s.leaves(1)
	shown := s.text()[:strings.LastIndex(s.text(), leaveScreen)]
	if i := strings.IndexFunc(shown, func(r rune) bool { return r > 126 }); i >= 0 {
		t.Errorf("wrote %q", shown[i:min(i+20, len(shown))])
	}
	for c := range 8 {
		for _, code := range []string{
			fmt.Sprintf("\x1b[3%dm", c), fmt.Sprintf("\x1b[9%dm", c), fmt.Sprintf("\x1b[4%dm", c),
		} {
			if strings.Contains(shown, code) {
				t.Errorf("wrote the colour %q", code)
			}
		}
	}
}
