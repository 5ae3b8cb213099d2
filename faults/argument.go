package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// argument checks a fault's argument and returns the mistake; empty if there is none.
type argument func(text string) (mistake string)

// timeOf checks that an argument is a duration. If it is not, what describes the mistake, with an example.
func timeOf(what string) argument {
	return func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return what
		}
		return ""
	}
}

// numberOf checks that an argument is a number from 1 on.
func numberOf(what string) argument {
	return func(text string) string {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return what
		}
		return ""
	}
}

// oneOf checks that an argument is one of some words.
func oneOf(words ...string) argument {
	return func(text string) string {
		if !slices.Contains(words, text) {
			return "there is " + strings.Join(words, ", ")
		}
		return ""
	}
}

// node is a node's name, which the fault's Names look up.
func node(string) string { return "" }

// unknownName returns the name in an argument that does not exist in the scene; empty if all names exist, or if they
// cannot be checked.
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

// time returns the argument as a duration, or the default without an argument.
func (t *Target) time(without time.Duration) time.Duration {
	if d, err := time.ParseDuration(t.Arg); err == nil {
		return d
	}
	return without
}

// number returns the argument as a number, or the default without an argument.
func (t *Target) number(without int) int {
	if n, err := strconv.Atoi(t.Arg); err == nil {
		return n
	}
	return without
}
