package topologies

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// tempPrefix begins the name of every directory that the reaper may remove.
const tempPrefix = "hammerlock-"

// reaper is a shell that outlives the suite by a moment: when its input ends, however the suite ended, it kills the
// processes and removes the directories that it knows. It checks that a process number was not reused. It backs up the
// parent-death signal, which only Linux has, and which removes no directories.
type reaper struct {
	mu    sync.Mutex
	input io.WriteCloser
	cmd   *exec.Cmd
}

const reaperScript = `
trap '' HUP INT QUIT TERM
started() {
	if [ -r "/proc/$1/stat" ]; then sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20
	else ps -o lstart= -p "$1" | tr -d ' '; fi 2>/dev/null
}
pids=
while read -r what which; do
	case $what in
	pid) pids="$pids $which@$(started "$which")" ;;
	dir) set -- "$@" "$which" ;;
	esac
done
for p in $pids; do
	if [ "$(started "${p%%@*}")" = "${p#*@}" ]; then kill -CONT "${p%%@*}"; kill -KILL "${p%%@*}"; fi
done 2>/dev/null
for d in "$@"; do
	case $d in */` + tempPrefix + `*) rm -rf "$d" ;; esac
done
`

func startReaper() (*reaper, error) {
	cmd := exec.Command("/bin/sh", "-c", reaperScript)
	cmd.SysProcAttr = ownSession()
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return &reaper{input: input, cmd: cmd}, nil
}

// pid and dir name what the reaper cleans up. A run goes on without a reaper.
func (r *reaper) pid(pid int)     { r.tell("pid %d\n", pid) }
func (r *reaper) dir(path string) { r.tell("dir %s\n", path) }

func (r *reaper) tell(format string, arg any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.input, format, arg)
}

// close ends the reaper; it kills and removes what is left.
func (r *reaper) close() error {
	if err := r.input.Close(); err != nil {
		return err
	}
	return r.cmd.Wait()
}
