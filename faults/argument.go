package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// argument says what is wrong with an argument that a fault is given; empty if nothing is.
type argument func(text string) (mistake string)

// timeOf is an argument that is a time. What it is the time of is said with an example.
func timeOf(what string) argument {
	return func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return what
		}
		return ""
	}
}

// numberOf is an argument that is a number from 1 on.
func numberOf(what string) argument {
	return func(text string) string {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return what
		}
		return ""
	}
}

// oneOf is an argument that is one of some words.
func oneOf(words ...string) argument {
	return func(text string) string {
		if !slices.Contains(words, text) {
			return "there is " + strings.Join(words, ", ")
		}
		return ""
	}
}

// node is the name of a node, which the fault's Names look up.
func node(string) string { return "" }

// unknownName says which name in an argument names nothing in a scene; empty if all names are known, or none can be.
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

// time is the argument, or what it is without one.
func (t *Target) time(without time.Duration) time.Duration {
	if d, err := time.ParseDuration(t.Arg); err == nil {
		return d
	}
	return without
}

// number is the argument, or what it is without one.
func (t *Target) number(without int) int {
	if n, err := strconv.Atoi(t.Arg); err == nil {
		return n
	}
	return without
}
