package wire

import (
	"bytes"
	"strings"
)

// commands reads what a client sends, or a replication stream. After each command args and cut hold it.
type commands struct {
	args []string // nil behind an empty line
	cut  int64    // further arguments

	head    header
	left    int64 // arguments to come
	rest    int64 // bytes of the present one to come, with its end
	present text
	buf     []byte // the arguments, one behind the other
	ends    []int
	extra   int64
}

// next takes in b up to the end of a command. It returns how many bytes it used, and whether a command ends with them.
func (p *commands) next(b []byte) (n int, done bool, err error) {
	for n < len(b) && err == nil {
		used := 0
		if p.rest > 0 {
			used = p.bulk(b[n:])
		} else if p.left > 0 || p.head.first(b[n]) == '*' {
			used, err = p.begin(b[n:])
		} else {
			used, err = p.inline(b[n:])
		}
		if n += used; err == nil && p.rest == 0 && p.left == 0 && len(p.head.part) == 0 {
			p.finish()
			return n, true, nil
		}
	}
	return n, false, err
}

// begin reads the line that announces a command or an argument.
func (p *commands) begin(b []byte) (n int, err error) {
	line, n, err := p.head.line(b, maxHeader)
	if line == nil || err != nil {
		return n, err
	}
	sign, most := byte('*'), int64(maxLength)
	if p.left > 0 {
		sign, most = '$', maxBulk
	}
	size, ok := int64(0), len(line) > 2 && line[0] == sign && line[len(line)-1] == '\r'
	if ok {
		size, ok = number(line[1 : len(line)-1])
	}
	switch {
	case !ok || size > most || size < 0 && sign == '$':
		return n, errProtocol
	case sign == '$':
		p.rest = size + 2
	default:
		p.left = max(size, 0)
	}
	return n, nil
}

// bulk takes in bytes of the present argument. Like servers, it does not look at the two bytes behind it.
func (p *commands) bulk(b []byte) (n int) {
	n = int(min(p.rest, int64(len(b))))
	if data := int(min(p.rest-2, int64(n))); data > 0 && len(p.ends) < maxArgs {
		p.present.add(b[:data])
	}
	if p.rest -= int64(n); p.rest == 0 {
		p.left--
		p.add()
	}
	return n
}

// add takes the present argument in.
func (p *commands) add() {
	if len(p.ends) == maxArgs {
		p.extra++
		return
	}
	p.buf = append(p.buf, p.present.value()...)
	if len(p.ends) == 0 && p.present.long == nil {
		capitals(p.buf)
	}
	p.ends = append(p.ends, len(p.buf))
	p.present.reset()
}

func capitals(b []byte) {
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
}

func (p *commands) finish() {
	p.args, p.cut = nil, p.extra
	if len(p.ends) == 0 {
		return
	}
	p.args = make([]string, len(p.ends))
	all, from := string(p.buf), 0
	for i, end := range p.ends {
		p.args[i], from = all[from:end], end
	}
	p.buf, p.ends, p.extra = p.buf[:0], p.ends[:0], 0
	if hide(p.args) {
		for i := range p.args { // all has the secret
			p.args[i] = strings.Clone(p.args[i])
		}
	}
}

const hidden = "***"

// hide takes the secrets out of a command, and tells whether it may have some.
func hide(args []string) bool {
	if len(args) < 2 {
		return false
	}
	from, step := len(args), 1
	switch args[0] {
	case "AUTH":
		from = 1
	case "HELLO", "MIGRATE":
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

// inline reads a command in one line of words. One with quotes is not understood.
func (p *commands) inline(b []byte) (n int, err error) {
	line, n, err := p.head.line(b, maxInline)
	if line == nil || err != nil {
		return n, err
	}
	if bytes.ContainsAny(line, `"'`) {
		return n, errProtocol
	}
	for _, w := range bytes.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r\x00", r) }) {
		p.present.add(w)
		p.add()
	}
	return n, nil
}
