package wire

import "strconv"

var kinds = [256]Kind{'+': Simple, '-': Error, ':': Integer, '(': BigNumber, ',': Double, '#': Bool, '_': Nil,
	'$': Bulk, '=': Verbatim, '!': Error, '*': Array, '~': Set, '>': Push, '%': Map}

// reply reads one reply of a server. It keeps only the first *left values, and parses the others without keeping them.
// It supports no attributes and streamed values, which servers send only for debugging.
func (f *flow) reply(left *int, depth int) (r Reply, err error) {
	line, err := f.line(maxInline)
	if err != nil {
		return r, err
	}
	if len(line) < 2 || line[len(line)-1] != '\r' {
		return r, errProtocol
	}
	sign, body, keep := line[0], line[1:len(line)-1], *left > 0
	r.Kind = kinds[sign]
	*left--
	switch sign {
	case '+', '-', '(', ',', '#':
		if r.Text = textOf(body); sign == '#' && r.Text == "t" {
			r.Int = 1
		}
		return r, nil
	case ':':
		if r.Int, err = strconv.ParseInt(string(body), 10, 64); err != nil {
			return r, errProtocol
		}
		r.Text = strconv.FormatInt(r.Int, 10)
		return r, nil
	case '_':
		return r, nil
	}
	size, err := number(body)
	switch {
	case size == -1 && (sign == '$' || sign == '*'):
		return Reply{Kind: Nil}, nil
	case err != nil || size < 0 || r.Kind == Unseen:
		return r, errProtocol
	case sign == '$' || sign == '=' || sign == '!':
		if !keep {
			return r, f.skip(size + 2)
		}
		f.part, err = f.text(f.part[:0], size)
		r.Text = string(f.part)
		return r, err
	}
	if r.Kind == Map {
		size *= 2
	}
	r.Int = size
	return r, f.items(&r, left, depth)
}

func (f *flow) items(r *Reply, left *int, depth int) error {
	if r.Int > maxLength || depth == maxDepth {
		return errProtocol
	}
	for range r.Int {
		keep := *left > 0
		item, err := f.reply(left, depth+1)
		if err != nil {
			return err
		}
		if keep {
			r.Items = append(r.Items, item)
		}
	}
	return nil
}

// textOf returns the text of a line, or its digest if it is long. It does not allocate for the two most frequent
// texts.
func textOf(b []byte) string {
	switch string(b) {
	case "OK":
		return "OK"
	case "QUEUED":
		return "QUEUED"
	}
	return string(word(nil, b))
}
