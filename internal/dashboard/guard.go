package dashboard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
)

// guard is a shell process that restores the terminal if this process cannot, after a panic or a kill. It has saved
// the terminal's settings, and waits for the end of its input.
type guard struct {
	shell *exec.Cmd
	pipe  *os.File
}

// guardScript restores the terminal and prints its input, unless the input is "ok". The input is the text of a crash.
// The Go runtime writes it to the guard, because on the terminal it would disappear with the screen.
const guardScript = `trap '' INT TERM HUP QUIT TSTP TTOU TTIN
saved=$(stty -g </dev/tty) || exit 1
echo ready
said=$(cat)
[ "$said" = ok ] && exit 0
stty "$saved" </dev/tty
printf '\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?2004l' >/dev/tty
printf '\033[?1l\033>\033[?7h\033[0m\033[?25h\033[?1049l' >/dev/tty
printf '%s\n' "$said" >&2
`

// newGuard starts a guard. Call it while the terminal still has its normal settings.
func newGuard() (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	g := &guard{shell: exec.Command("/bin/sh", "-c", guardScript), pipe: write}
	g.shell.Stdin, g.shell.Stderr, g.shell.SysProcAttr = read, os.Stderr, &syscall.SysProcAttr{Setpgid: true}
	answer, err := g.shell.StdoutPipe()
	if err == nil {
		err = g.shell.Start()
	}
	err = errors.Join(err, read.Close())
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	if line, err := bufio.NewReader(answer).ReadString('\n'); err != nil || line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("the terminal's settings cannot be read: %v", err), write.Close(),
			g.shell.Wait())
	}
	return g, debug.SetCrashOutput(write, debug.CrashOptions{})
}

// dismiss ends the guard when the terminal is restored already; g may be nil.
func (g *guard) dismiss() error {
	if g == nil {
		return nil
	}
	_, err := io.WriteString(g.pipe, "ok\n")
	return errors.Join(err, debug.SetCrashOutput(nil, debug.CrashOptions{}), g.pipe.Close(), g.shell.Wait())
}
