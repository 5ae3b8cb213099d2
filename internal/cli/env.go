package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hammerlock/internal/attach"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
)

// Env is the part of the process that commands use: arguments, streams and environment. Tests replace it.
type Env struct {
	Args   []string
	Stdin  io.Reader
	Getenv func(string) string // nil = no variable is set
	// Environ has all variables, as NAME=VALUE. Names that are nearly those of flags are reported as misspelt. If
	// Environ is nil, nothing is reported.
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer
	// More has the locks, counters and topologies that another module adds to those of the suite.
	More crew.Catalogue

	// programs returns the root commands of bench and verify, for hints on what a user may have meant.
	programs  func() []*cobra.Command
	secrets   attach.Secrets
	terminals [2]*os.File // terminals behind Stdout and Stderr, for a dashboard; nil = it is no terminal
}

func (e Env) complain(err error) { e.lines("error:", err) }

// lines prints every line of an error, with the label in front.
func (e Env) lines(label string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintln(e.Stderr, label, strings.TrimRight(line, "\n"))
	}
}

// columns returns the width of the terminal, at most 120. Without a terminal it returns human.Width.
func (e Env) columns() int {
	if at := e.terminals[0]; at != nil {
		if width, _, err := term.GetSize(int(at.Fd())); err == nil && width > 40 {
			return min(width, 120)
		}
	}
	return human.Width
}

func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]{}~#!`") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// typed returns the path of a program such as "verify", for a user to paste. If this program was called as bin/bench,
// it returns bin/verify.
func typed(program string) string {
	if own := os.Args[0]; !filepath.IsAbs(own) && slices.Contains([]string{"bench", "verify"}, filepath.Base(own)) &&
		filepath.Dir(own) != "." {
		return filepath.Join(filepath.Dir(own), program)
	}
	return program
}
