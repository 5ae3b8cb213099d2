package wire

import "strconv"

// replies reads what a server sends. After each reply, reply holds what is kept of it.
type replies struct {
	reply Reply
	limit int // values that are kept of a reply

	kept    int // of the one under way
	head    header
	rest    int64 // bytes of a string to come, with its end
	sign    byte  // of that string
	piece   bool  // it is a piece of one that comes in pieces
	present text
	stack   []frame
}

// frame is an aggregate under way.
type frame struct {
	reply     Reply
	left      int64 // values to come; untilEnded: as many as come
	attribute bool  // it is no value, but stands before one
	dropped   bool
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

var plainKinds = map[byte]Kind{'+': Simple, '-': Error, '(': BigNumber, ',': Double}

var longKinds = map[byte]Kind{'$': Bulk, '=': Verbatim, '!': Error}

var aggregates = map[byte]Kind{'*': Array, '~': Set, '>': Push, '%': Map, '|': Map}

// line takes in the first line of a value, which may be all of it.
func (p *replies) line(line []byte) (done bool, err error) {
	if len(line) < 2 || line[len(line)-1] != '\r' || p.piece && line[0] != ';' {
		return false, errProtocol
	}
	sign, body := line[0], line[1:len(line)-1]
	switch sign {
	case '+', '-', '(', ',':
		return p.add(Reply{Kind: plainKinds[sign], Text: p.string(body)}), nil
	case ':':
		n, err := strconv.ParseInt(string(body), 10, 64)
		if err != nil {
			return false, errProtocol
		}
		return p.add(Reply{Kind: Integer, Int: n, Text: strconv.FormatInt(n, 10)}), nil
	case '_':
		return p.add(Reply{Kind: Nil}), nil
	case '#':
		yes := Reply{Kind: Bool, Text: string(body)}
		if yes.Text == "t" {
			yes.Int = 1
		}
		return p.add(yes), nil
	case '.':
		if len(body) == 0 {
			return p.ended()
		}
	}
	size, ok := number(body)
	switch {
	case string(body) == "?":
		size, ok = untilEnded, sign != ';'
	case size == -1 && (sign == '$' || sign == '*'):
		return p.add(Reply{Kind: Nil}), nil
	case size < 0:
		ok = false
	}
	if !ok {
		return false, errProtocol
	}
	if kind, is := aggregates[sign]; is {
		return p.open(sign, kind, size)
	}
	return p.announced(sign, size)
}

// announced begins a string of any bytes, or a piece of one.
func (p *replies) announced(sign byte, size int64) (done bool, err error) {
	if size > maxBulk || sign == ';' && !p.piece {
		return false, errProtocol
	}
	if sign == ';' {
		if p.piece = size > 0; size == 0 {
			return p.finish(), nil
		}
	} else if p.sign, p.piece = sign, size == untilEnded; longKinds[sign] == Unseen || p.piece && sign != '$' {
		return false, errProtocol
	}
	if size != untilEnded {
		p.rest = size + 2
	}
	return false, nil
}

// bulk takes in bytes of a string.
func (p *replies) bulk(b []byte) (n int, done bool) {
	n = int(min(p.rest, int64(len(b))))
	if data := int(min(p.rest-2, int64(n))); data > 0 && p.keeps() {
		p.present.add(b[:data])
	}
	if p.rest -= int64(n); p.rest > 0 || p.piece {
		return n, false
	}
	return n, p.finish()
}

// finish takes in a string that is complete.
func (p *replies) finish() (done bool) {
	r := Reply{Kind: longKinds[p.sign], Text: string(p.present.value())}
	p.present.reset()
	return p.add(r)
}

// string is what is kept of a text.
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
func (p *replies) open(sign byte, kind Kind, size int64) (done bool, err error) {
	if size > 0 && (sign == '%' || sign == '|') {
		size *= 2
	}
	if size > maxLength || len(p.stack) == maxDepth {
		return false, errProtocol
	}
	attribute := sign == '|'
	f := frame{reply: Reply{Kind: kind, Int: size}, left: size, attribute: attribute, dropped: attribute || !p.keeps()}
	if !f.dropped {
		p.kept++
	}
	p.stack = append(p.stack, f)
	return size == 0 && p.close(), nil
}

// ended ends an aggregate that did not say how long it is.
func (p *replies) ended() (done bool, err error) {
	if len(p.stack) == 0 || p.stack[len(p.stack)-1].left != untilEnded {
		return false, errProtocol
	}
	return p.close(), nil
}

// close takes in an aggregate that is complete.
func (p *replies) close() (done bool) {
	f := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	return !f.attribute && p.take(f.reply, !f.dropped)
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
	if top.left == untilEnded {
		return false
	}
	top.left--
	return top.left == 0 && p.close()
}
