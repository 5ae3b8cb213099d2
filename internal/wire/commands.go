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
}

func (p *command) read(f *flow) error {
	p.args, p.cut, p.buf, p.ends = nil, 0, p.buf[:0], p.ends[:0]
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
		if p.buf, err = f.text(p.buf, size); err != nil {
			return err
		}
		p.ends = append(p.ends, len(p.buf))
	}
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
