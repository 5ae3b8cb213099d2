package wire

import (
	"bytes"
	"slices"
	"strings"
)

// command is a command from a client, or from a replication stream.
type command struct {
	args []string // nil for an empty line
	cut  int64    // number of arguments that were not kept

	buf  []byte // the arguments, one directly after the other
	ends []int
	// script is the text of a script if it is too long for buf; otherwise it is empty. scripts has the latest texts:
	// programs send the same few scripts again and again, so each needs memory only once.
	script  string
	scripts map[string]string
}

func (p *command) read(f *flow) error {
	p.args, p.cut, p.buf, p.ends, p.script = nil, 0, p.buf[:0], p.ends[:0], ""
	if err := f.need(1); err != nil {
		return err
	}
	parse := p.array
	if f.buf[f.seen] != '*' {
		parse = p.inline
	}
	if err := parse(f); err != nil || len(p.ends) == 0 {
		return err
	}
	if name := p.buf[:p.ends[0]]; !bytes.HasPrefix(name, []byte("sha1:")) {
		capitals(name)
	}
	p.args = make([]string, len(p.ends))
	all, from := string(p.buf), 0
	for i, end := range p.ends {
		p.args[i], from = all[from:end], end
	}
	if p.script != "" {
		p.args[p.scriptAt()] = p.script
	}
	if hide(p.args) {
		for i := range p.args { // copy them, since all arguments share memory with the secret
			p.args[i] = strings.Clone(p.args[i])
		}
	}
	return nil
}

// array reads a command that is an array of strings, as libraries send it.
func (p *command) array(f *flow) error {
	n, err := f.size('*')
	if err != nil {
		return err
	}
	if n > maxLength {
		return errProtocol
	}
	for i := int64(0); i < n; i++ {
		size, err := f.size('$')
		switch {
		case err != nil:
			return err
		case size < 0:
			return errProtocol
		case i >= maxArgs:
			p.cut++
			if err := f.skip(size + 2); err != nil {
				return err
			}
			continue
		}
		if size > maxKept && size <= maxScript && int(i) == p.scriptAt() {
			err = p.text(f, int(size))
		} else {
			p.buf, err = f.text(p.buf, size)
		}
		if err != nil {
			return err
		}
		p.ends = append(p.ends, len(p.buf))
	}
	return nil
}

// scriptAt returns the position of a script's text in a command whose name is known; -1 = it has none.
func (p *command) scriptAt() int {
	if len(p.ends) == 0 {
		return -1
	}
	switch name := p.buf[:p.ends[0]]; {
	case bytes.EqualFold(name, []byte("EVAL")):
		return 1
	case bytes.EqualFold(name, []byte("SCRIPT")):
		return 2
	}
	return -1
}

func (p *command) text(f *flow, size int) error {
	if err := f.need(size + 2); err != nil {
		return err
	}
	text := f.buf[f.seen : f.seen+size]
	known, ok := p.scripts[string(text)]
	if !ok {
		if known = string(text); len(p.scripts) >= maxTexts || p.scripts == nil {
			p.scripts = map[string]string{}
		}
		p.scripts[known] = known
	}
	f.seen += size + 2
	p.script = known
	return nil
}

// inline reads a command that is a line of words. Quotes are an error.
func (p *command) inline(f *flow) error {
	line, err := f.line(maxInline)
	if err != nil {
		return err
	}
	if bytes.ContainsAny(line, `"'`) {
		return errProtocol
	}
	for _, w := range bytes.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r\x00", r) }) {
		if len(p.ends) == maxArgs {
			p.cut++
			continue
		}
		p.buf = word(p.buf, w)
		p.ends = append(p.ends, len(p.buf))
	}
	return nil
}

func capitals(b []byte) {
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
}

// clientName returns the name that a command gives its connection; empty if it gives none.
func clientName(args []string) string {
	switch n := len(args); {
	case n == 3 && args[0] == "CLIENT" && strings.EqualFold(args[1], "SETNAME"),
		n > 3 && args[0] == "HELLO" && strings.EqualFold(args[n-2], "SETNAME"):
		if args[n-1] != hidden {
			return strings.Clone(args[n-1])
		}
	}
	return ""
}

const hidden = "***"

// hide replaces the secrets in a command. It returns whether the command may have had any.
func hide(args []string) bool {
	if len(args) < 2 {
		return false
	}
	from, step := len(args), 1
	switch args[0] {
	case "AUTH":
		from = 1
	case "HELLO":
		if i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "AUTH") }); i >= 0 {
			if from = i + 1; len(args) == i+5 && strings.EqualFold(args[i+3], "SETNAME") {
				args[i+1], args[i+2], from = hidden, hidden, len(args)
			}
		}
	case "MIGRATE":
		for i, a := range args {
			if (strings.EqualFold(a, "AUTH") || strings.EqualFold(a, "AUTH2")) && i+1 < len(args) {
				from = i + 1
			}
		}
	case "ACL":
		from = 2
	case "CONFIG", "SENTINEL":
		if strings.EqualFold(args[1], "SET") || strings.EqualFold(args[1], "CONFIG") {
			from, step = 3, 2
			if args[0] == "SENTINEL" {
				step = 1
			}
		}
	default:
		return false
	}
	for i := from; i < len(args); i += step {
		args[i] = hidden
	}
	return true
}
