package topologies

import (
	"crypto/rand"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// tempPrefix begins the name of each directory that the reaper may remove.
const tempPrefix = "hammerlock-"

// reaper is a shell process that cleans up when the suite ends, even if the suite is killed. Its standard input is a
// pipe from the suite. When the pipe is closed, it kills the process groups that it was told to watch, and removes
// one directory. It checks that no process number was reused. It prefers shell builtins, because each external
// program takes some ms for each node. The parent-death signal is not enough: only Linux has it, and it removes no
// directory.
type reaper struct {
	mu    sync.Mutex
	input io.WriteCloser
	cmd   *exec.Cmd
	mark  string
}

const reaperScript = `
trap '' HUP INT QUIT TERM
started() {
	since=
	if [ -r "/proc/$1/stat" ]; then
		read -r since <"/proc/$1/stat"
		set -- ${since##*) }
		since=${20}
	else since=$(ps -o lstart= -p "$1" | tr -d ' '); fi 2>/dev/null
}
pids= mark=
while read -r what which; do
	case $what in
	pid) started "$which"; pids="$pids $which@$since" ;;
	mark) mark=$which ;;
	esac
done
for p in $pids; do
	n=${p%%@*}
	if kill -0 "$n"; then
		started "$n"
		[ "$since" = "${p#*@}" ] || continue
	fi # no other group can have the number as long as one of this group lives
	for whom in "-$n" "$n"; do kill -CONT "$whom"; kill -KILL "$whom"; done
done 2>/dev/null
for again in 1 2 3 4 5; do # processes outside the groups have the mark in their environment, and may start more
	[ -n "$mark" ] || break
	all=$(grep -lsF "$mark" /proc/[0-9]*/environ)
	[ -n "$all" ] || break
	for p in $all; do n=${p#/proc/}; kill -KILL "${n%/environ}"; done
done 2>/dev/null
case $1 in */` + tempPrefix + `*)
	rm -rf "$1" || { # a server without a name yet dies of the parent-death signal, and may still make a file
		sleep 1
		rm -rf "$1"
	} ;;
esac
`

// startReaper starts a reaper for one directory, whose name may contain any characters.
func startReaper(dir string) (*reaper, error) {
	cmd := exec.Command("/bin/sh", "-c", reaperScript, "reaper", dir)
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

// Watch tells the reaper to kill this process and its group when the suite ends.
func (r *reaper) Watch(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.input, "pid %d\n", pid)
}

// Mark returns an environment variable for programs that start other programs. On Linux the reaper kills all
// processes with this variable, also those that have left their process group.
func (r *reaper) Mark() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mark == "" {
		r.mark = "HAMMERLOCK_ENDS=" + rand.Text()
		_, _ = fmt.Fprintf(r.input, "mark %s\n", r.mark)
	}
	return r.mark
}

// Close closes the pipe and waits until the reaper has cleaned up.
func (r *reaper) Close() error {
	if err := r.input.Close(); err != nil {
		return err
	}
	return r.cmd.Wait()
}
