package human

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Visible returns a writer to w that escapes what a terminal would obey: control characters except newline and tab,
// text direction, and invalid UTF-8. File names and servers' answers can contain them. In JSON strings, the escapes
// mean the same characters.
func Visible(w io.Writer) io.Writer { return &visible{w: w} }

type visible struct {
	w    io.Writer
	left []byte // the start of a character that the next Write completes
}

// Columns is the width of the writer behind v.
func (v *visible) Columns() int { return Columns(v.w) }

// Write writes p with escapes. It returns len(p) unless writing fails.
func (v *visible) Write(p []byte) (int, error) {
	text := p
	if len(v.left) > 0 {
		text = append(v.left, p...)
		v.left = nil
	}
	out, plain := []byte(nil), 0 // text[plain:] is not in out yet
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
