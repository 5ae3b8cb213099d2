package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// argument checks the argument of a fault and returns an error message; empty if it is valid.
type argument func(text string) (mistake string)

// timeOf returns a check that an argument is a duration. The text describes what it is for, and has an example.
func timeOf(what string) argument {
	return func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return what
		}
		return ""
	}
}

// numberOf returns a check that an argument is a number from 1 on.
func numberOf(what string) argument {
	return func(text string) string {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return what
		}
		return ""
	}
}

// oneOf returns a check that an argument is one of the given words.
func oneOf(words ...string) argument {
	return func(text string) string {
		if !slices.Contains(words, text) {
			return "there is " + strings.Join(words, ", ")
		}
		return ""
	}
}

// node accepts any name: whether the node exists is checked later, by the fault's Names.
func node(string) string { return "" }

// unknownName returns a name in the argument that does not exist in the scene; empty if all exist, or if the names are
// not known yet.
func (f Fault) unknownName(arg string, s Scene) string {
	if f.Names == nil || arg == "" {
		return ""
	}
	named, known := f.Names(arg, s)
	for _, name := range named {
		if len(known) > 0 && !slices.Contains(known, name) {
			return name + ": " + human.Instead(name, known)
		}
	}
	return ""
}

// time returns the argument as a duration, or the default if there is no argument.
func (t *Target) time(without time.Duration) time.Duration {
	if d, err := time.ParseDuration(t.Arg); err == nil {
		return d
	}
	return without
}

// number returns the argument as a number, or the default if there is no argument.
func (t *Target) number(without int) int {
	if n, err := strconv.Atoi(t.Arg); err == nil {
		return n
	}
	return without
}
