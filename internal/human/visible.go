package human

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Visible returns a writer that escapes what could control a terminal: control characters other than newline and tab,
// changes of text direction, and invalid UTF-8. Names of files and replies of servers may contain them. In JSON
// strings, the escapes stand for the same characters.
func Visible(w io.Writer) io.Writer { return &visible{w: w} }

type visible struct {
	w    io.Writer
	left []byte // first bytes of a character whose other bytes come with the next Write
}

// Columns returns the width of the writer to which v writes.
func (v *visible) Columns() int { return Columns(v.w) }

// Write writes p with escapes. Without an error it returns len(p), although it may write more bytes.
func (v *visible) Write(p []byte) (int, error) {
	text := p
	if len(v.left) > 0 {
		text = append(v.left, p...)
		v.left = nil
	}
	out, plain := []byte(nil), 0 // text[plain:] is not yet in out
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if !utf8.FullRune(text[i:]) {
			v.left, text = append([]byte(nil), text[i:]...), text[:i]
			break
		}
		r, size := utf8.DecodeRune(text[i:])
		wrong := r == utf8.RuneError && size == 1
		if !wrong && !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
			i += size
			continue
		}
		out = append(out, text[plain:i]...)
		if wrong {
			out = fmt.Appendf(out, `\x%02x`, c)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
		plain = i
	}
	if out != nil {
		text = append(out, text[plain:]...)
	}
	if _, err := v.w.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
