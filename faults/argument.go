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

// argument checks the text of a fault's argument. It returns an error message, or an empty text if the
// argument is valid.
type argument func(text string) (mistake string)

// timeOf returns a check that an argument is a positive duration. Its parameter is the error message, with an example.
func timeOf(what string) argument {
	return func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return what
		}
		return ""
	}
}

// numberOf returns a check that an argument is a number of at least 1. Its parameter is the error message,
// with an example.
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

// node accepts any argument, because unknownName checks later whether a node has this name.
func node(string) string { return "" }

// unknownName returns an error message for the first name in the argument that does not exist in the scene. It
// returns an empty text if all names exist, or if the names of the scene are not known yet.
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

// time returns the fault's argument as a duration. If the fault has no argument, it returns its parameter.
func (t *Target) time(without time.Duration) time.Duration {
	if d, err := time.ParseDuration(t.Arg); err == nil {
		return d
	}
	return without
}

// number returns the fault's argument as a number. If the fault has no argument, it returns its parameter.
func (t *Target) number(without int) int {
	if n, err := strconv.Atoi(t.Arg); err == nil {
		return n
	}
	return without
}
