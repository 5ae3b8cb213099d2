package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// argument checks the argument of a fault. It returns an error message; empty if the argument is valid.
type argument func(text string) (mistake string)

// timeOf makes a check that an argument is a duration. The parameter is the error message, with an example.
func timeOf(what string) argument {
	return func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return what
		}
		return ""
	}
}

// numberOf makes a check that an argument is a number from 1 on. The parameter is the error message, with an example.
func numberOf(what string) argument {
	return func(text string) string {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return what
		}
		return ""
	}
}

func oneOf(words ...string) argument {
	return func(text string) string {
		if !slices.Contains(words, text) {
			return "there is " + strings.Join(words, ", ")
		}
		return ""
	}
}

// node accepts any name, because Fault.Names checks later whether the node exists.
func node(string) string { return "" }

// unknownName returns an error message for the first name in the argument that does not exist in the scene. It is
// empty if all names exist, or if the scene does not know its names yet.
func (f Fault) unknownName(arg string, s Scene) string {
	if f.Names == nil || arg == "" {
		return ""
	}
	named, known := f.Names(arg, s)
	for _, name := range named {
		if len(known) > 0 && !slices.Contains(known, name) {
			return fmt.Sprintf("no %s %s: %s", cmp.Or(f.Named, "node"), name, human.Instead(name, known))
		}
	}
	return ""
}

// time returns the fault's argument as a duration. The parameter is the default for a fault without an argument.
func (t *Target) time(without time.Duration) time.Duration {
	if d, err := time.ParseDuration(t.Arg); err == nil {
		return d
	}
	return without
}

// number returns the fault's argument as a number. The parameter is the default for a fault without an argument.
func (t *Target) number(without int) int {
	if n, err := strconv.Atoi(t.Arg); err == nil {
		return n
	}
	return without
}
