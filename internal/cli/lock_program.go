package cli

import (
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/attach"
	"hammerlock/internal/driver"
	"hammerlock/locks"
)

// execPrefix begins the name of a lock that runs in a separate program.
const execPrefix = "exec:"

// lockName returns the value of --lock for a lock.
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

// program returns the lock that runs in a program, and true, if the text names a program; otherwise false. The
// program's greeting is read later, when the plan is checked.
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

// inGo refuses programs where a lock must be part of this one.
func inGo(text string) (s locks.Spec, is bool, err error) {
	if is = strings.HasPrefix(text, execPrefix); is {
		err = fmt.Errorf("a program cannot be explored, only a lock in Go can: "+
			"verify --lock %s runs it on real servers", quote(text))
	}
	return s, is, err
}

// programs joins the parts of commands that contain commas. After exec:, all parts belong to the command, up to the
// name of a lock or the next exec:.
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
