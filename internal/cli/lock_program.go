package cli

import (
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite"

	"hammerlock/internal/attach"
	"hammerlock/internal/driver"
	"hammerlock/locks"
)

// execPrefix is the prefix in --lock of a command that starts a separate program with a lock, as in exec:python3
// x.py.
const execPrefix = "exec:"

// lockName returns the text that --lock needs to select the lock s.
func lockName(s locks.Spec) string {
	switch {
	case s.Program != nil:
		return execPrefix + attach.Clean(driver.Join(s.Program.Args))
	case s.Name == "":
		return autoLock
	default:
		return s.Name
	}
}

// program parses a value of --lock that may be a command. If it is one, the result is the lock in that program, and
// true. The program itself is started only when the plan is checked.
func program(text string) (s locks.Spec, is bool, err error) {
	command, is := strings.CutPrefix(text, execPrefix)
	if !is && strings.ContainsAny(text, " /") {
		return s, true, fmt.Errorf("a lock that is a program is named by its command: did you mean %s?",
			quote(execPrefix+text))
	}
	if !is {
		return s, false, nil
	}
	args, err := driver.Split(command)
	return locks.Spec{Name: text, Program: &locks.Program{Args: args}}, true, err
}

// inGo is used in place of program where only locks in Go are possible. It returns an error for a command.
func inGo(text string) (s locks.Spec, is bool, err error) {
	if is = strings.HasPrefix(text, execPrefix); is {
		err = fmt.Errorf("a program cannot be explored, only a lock in Go can: "+
			"verify --lock %s runs it on real servers", quote(text))
	}
	return s, is, err
}

// programs repairs a list that was split at commas, because a command may contain commas. All parts after "exec:"
// belong to the command, up to the name of a lock or the next "exec:".
func programs(parts, names []string) (list []string) {
	for _, part := range parts {
		last := len(list) - 1
		name := strings.HasPrefix(part, execPrefix) || slices.Contains(names, part)
		if last >= 0 && strings.HasPrefix(list[last], execPrefix) && !name {
			list[last] += "," + part
			continue
		}
		list = append(list, part)
	}
	return list
}

// autoLock is the value of --lock for the default lock of each topology. In a plan, that is the zero locks.Spec.
const autoLock = "auto"
