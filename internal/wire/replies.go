package wire

import "strconv"

// replies reads what a server sends. After each reply, reply holds what is kept of it. Types that no server sends
// unless it is told to debug (attributes, values in pieces) are not understood.
type replies struct {
	reply Reply
	limit int // values that are kept of a reply

	kept    int // of the one under way
	head    header
	rest    int64 // bytes of a string to come, with its end
	long    Kind  // of that string
	present text
	stack   []frame
}

// frame is an aggregate under way.
type frame struct {
	reply   Reply
	left    int64 // values to come
	dropped bool
}

// next takes in b up to the end of a reply. It returns how many bytes it used, and whether a reply ends with them.
func (p *replies) next(b []byte) (n int, done bool, err error) {
	for n < len(b) && err == nil && !done {
		used := 0
		if p.rest > 0 {
			used, done = p.bulk(b[n:])
		} else {
			var line []byte
			if line, used, err = p.head.line(b[n:], maxInline); line != nil && err == nil {
				done, err = p.line(line)
			}
		}
		n += used
	}
	if done {
		p.kept = 0
	}
	return n, done, err
}

var kinds = map[byte]Kind{'+': Simple, '-': Error, ':': Integer, '(': BigNumber, ',': Double, '#': Bool, '_': Nil,
	'$': Bulk, '=': Verbatim, '!': Error, '*': Array, '~': Set, '>': Push, '%': Map}

// line takes in the first line of a value, which may be all of it.
func (p *replies) line(line []byte) (done bool, err error) {
	if len(line) < 2 || line[len(line)-1] != '\r' {
		return false, errProtocol
	}
	sign, body := line[0], line[1:len(line)-1]
	r := Reply{Kind: kinds[sign]}
	switch sign {
	case '+', '-', '(', ',', '#':
		if r.Text = p.string(body); sign == '#' && r.Text == "t" {
			r.Int = 1
		}
		return p.add(r), nil
	case ':':
		r.Int, err = strconv.ParseInt(string(body), 10, 64)
		if r.Text = strconv.FormatInt(r.Int, 10); err != nil {
			return false, errProtocol
		}
		return p.add(r), nil
	case '_':
		return p.add(r), nil
	}
	size, ok := number(body)
	switch {
	case size == -1 && (sign == '$' || sign == '*'):
		return p.add(Reply{Kind: Nil}), nil
	case !ok || size < 0 || r.Kind == Unseen:
		return false, errProtocol
	case sign == '$' || sign == '=' || sign == '!':
		if size > maxBulk {
			return false, errProtocol
		}
		p.long, p.rest = r.Kind, size+2
		return false, nil
	}
	return p.open(r.Kind, size)
}

// bulk takes in bytes of a string.
func (p *replies) bulk(b []byte) (n int, done bool) {
	n = int(min(p.rest, int64(len(b))))
	if data := int(min(p.rest-2, int64(n))); data > 0 && p.keeps() {
		p.present.add(b[:data])
	}
	if p.rest -= int64(n); p.rest > 0 {
		return n, false
	}
	r := Reply{Kind: p.long, Text: string(p.present.value())}
	p.present.reset()
	return n, p.add(r)
}

// string keeps a text.
func (p *replies) string(b []byte) string {
	switch string(b) { // the most frequent ones need no memory
	case "OK":
		return "OK"
	case "QUEUED":
		return "QUEUED"
	}
	defer p.present.reset()
	p.present.add(b)
	return string(p.present.value())
}

// keeps tells whether the next value is kept.
func (p *replies) keeps() bool {
	return p.kept < p.limit && (len(p.stack) == 0 || !p.stack[len(p.stack)-1].dropped)
}

// open begins an aggregate.
func (p *replies) open(kind Kind, size int64) (done bool, err error) {
	if kind == Map {
		size *= 2
	}
	if size > maxLength || len(p.stack) == maxDepth {
		return false, errProtocol
	}
	f := frame{reply: Reply{Kind: kind, Int: size}, left: size, dropped: !p.keeps()}
	if !f.dropped {
		p.kept++
	}
	p.stack = append(p.stack, f)
	return size == 0 && p.close(), nil
}

// close takes in an aggregate that is complete.
func (p *replies) close() (done bool) {
	f := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	return p.take(f.reply, !f.dropped)
}

// add takes in a value without items.
func (p *replies) add(r Reply) (done bool) {
	keep := p.keeps()
	if keep {
		p.kept++
	}
	return p.take(r, keep)
}

// take puts a value where it belongs, and tells whether a reply ends with it.
func (p *replies) take(r Reply, keep bool) (done bool) {
	if len(p.stack) == 0 {
		p.reply = r
		return true
	}
	top := &p.stack[len(p.stack)-1]
	if keep {
		top.reply.Items = append(top.reply.Items, r)
	}
	top.left--
	return top.left == 0 && p.close()
}
