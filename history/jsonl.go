package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

const (
	linesFormat  = "hammerlock-history"
	linesVersion = 1
	maxLine      = 2 * maxPayload
)

// firstLine and lastLine are the first and the last line of a file of JSON lines. FORMAT.md describes the format.
type firstLine struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Header
}

type lastLine struct {
	End     string `json:"end"` // complete or partial
	Partial string `json:"partial,omitempty"`
	Allowed bool   `json:"allowed,omitempty"` // the user allowed the rest to be missing
	Ops     *int   `json:"ops,omitempty"`
}

// WriteJSONL writes a history as JSON lines, the format for other programs.
func WriteJSONL(w io.Writer, h *History) error {
	bw := bufio.NewWriterSize(w, chunkSize)
	put := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		_, err = bw.Write(append(b, '\n'))
		return err
	}
	if err := put(firstLine{linesFormat, linesVersion, h.Header}); err != nil {
		return err
	}
	for i := range h.Ops {
		op := &h.Ops[i]
		if _, err := bw.Write(append(appendOp(bw.AvailableBuffer(), op, h.Notes[op.ID]), '\n')); err != nil {
			return err
		}
	}
	n := len(h.Ops)
	last := lastLine{End: "complete", Ops: &n}
	if h.Partial != "" {
		last.End, last.Partial, last.Allowed = "partial", h.Partial, h.Allowed
	}
	if err := put(last); err != nil {
		return err
	}
	return bw.Flush()
}

type lines struct {
	r      *bufio.Reader
	size   int64
	n      int   // number of the current line
	start  int64 // offset of the current line
	next   int64
	h      History
	at     []int32 // line numbers, by operation
	ids    ids
	begun  bool
	ended  bool
	parsed line
}

// readLines reads JSON lines and validates the history. A file whose last line is missing or torn is partial. Any
// other mistake is a *formatError with its line, or a problemList.
func readLines(br *bufio.Reader, size int64) (*History, error) {
	l := &lines{r: br, size: size, ids: ids{notes: map[int]string{}}}
	if err := l.all(); err != nil {
		return nil, err
	}
	if !l.begun {
		return nil, &formatError{Line: 1, What: "the file is empty"}
	}
	if err := l.ids.finish(l); err != nil {
		return nil, err
	}
	if !l.ended && !slices.IsSortedFunc(l.h.Ops, byReturn) {
		return nil, &formatError{Line: l.n,
			What: "the end is missing, and the lines are not in the order of their returns: what is missing cannot " +
				"be told"}
	}
	sortOps(l.h.Ops, l.at)
	err := l.h.Validate()
	if err == nil {
		return &l.h, nil
	}
	problems, _ := err.(problemList)
	for i, p := range problems {
		problems[i].Line = 1
		if p.Index >= 0 {
			problems[i].Line = int(l.at[p.Index])
		}
	}
	return nil, err
}

func (l *lines) all() error {
	for {
		text, torn, err := l.line()
		if err != nil {
			return err
		}
		if text == nil {
			if !l.ended {
				l.h.Partial = "the file has no end: its writer was killed"
			}
			return nil
		}
		if len(space(text)) == 0 {
			continue
		}
		switch {
		case l.ended:
			return l.wrong("the file goes on after its end")
		case !utf8.Valid(text):
			err = errors.New("is not UTF-8")
		case !l.begun:
			l.begun, err = true, l.header(text)
			torn = false // without a header there is no history
		case bytes.HasPrefix(space(bytes.TrimPrefix(space(text), []byte("{"))), []byte(`"end"`)):
			err = l.end(text)
		default:
			err = l.op(text)
		}
		if err != nil && torn {
			l.h.Partial = fmt.Sprintf("line %d is torn: its writer was killed", l.n)
			return nil
		}
		if err != nil {
			return l.wrong("%v", err)
		}
	}
}

// line returns the next line, or nil at the end of the file. The result torn means that the line has no line feed.
func (l *lines) line() (text []byte, torn bool, err error) {
	text, err = l.r.ReadSlice('\n')
	l.start = l.next
	l.next += int64(len(text))
	l.n++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, false, l.wrong("is longer than %d bytes", l.r.Size())
	case errors.Is(err, io.EOF) && len(text) == 0:
		return nil, false, nil
	case errors.Is(err, io.EOF):
		return text, true, nil
	}
	return text, false, err
}

func (l *lines) header(text []byte) error {
	var first firstLine
	if err := strictJSON(text, &first); err != nil {
		return fmt.Errorf("not the beginning of a history: %w", err)
	}
	if first.Format != linesFormat {
		return fmt.Errorf("format %q, want %q", first.Format, linesFormat)
	}
	if first.Version != linesVersion {
		return fmt.Errorf("version %d of the format; this program reads version %d", first.Version, linesVersion)
	}
	l.h.Header = first.Header
	var said struct{ Claims *Claims }
	if err := json.Unmarshal(text, &said); err == nil && said.Claims == nil {
		l.h.Claims.Excludes = true // the default for a lock without stated claims
	}
	l.h.Claims.Complete()
	return nil
}

func (l *lines) end(text []byte) error {
	var last lastLine
	if err := strictJSON(text, &last); err != nil {
		return err
	}
	if last.Ops != nil && *last.Ops != len(l.h.Ops) {
		return fmt.Errorf("the file has %d operations, and %d by its end", len(l.h.Ops), *last.Ops)
	}
	if last.End != "complete" && last.End != "partial" || (last.End == "partial") != (last.Partial != "") {
		return errors.New(`the end is "complete", or "partial" with "partial" saying why`)
	}
	if len(last.Partial) > maxNote {
		return errNote
	}
	l.h.Partial, l.h.Allowed, l.ended = last.Partial, last.Allowed, true
	return nil
}

func (l *lines) op(text []byte) error {
	p := &l.parsed
	if err := p.parse(text); err != nil {
		return err
	}
	if len(p.ids[0]) == 0 {
		return errors.New(`"id" is missing`)
	}
	l.ids.read(l.h.Ops, p)
	if len(l.h.Ops) == 1<<10 { // enough operations to estimate how many follow
		l.h.Ops = reserve(&l.h.Space, l.h.Ops, l.size, l.start)
		l.at = slices.Grow(l.at, cap(l.h.Ops)-len(l.at))
	}
	l.h.Ops = Append(&l.h.Space, l.h.Ops, p.op)
	l.at = append(l.at, int32(l.n))
	if p.note != "" {
		l.ids.notes[len(l.h.Ops)-1] = p.note
	}
	return nil
}

func (l *lines) wrong(format string, args ...any) error {
	return &formatError{Offset: l.start, Line: l.n, What: fmt.Sprintf(format, args...)}
}
