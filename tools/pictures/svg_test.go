package main

import (
	"strings"
	"testing"
)

// TestTerminalSVG: words keep their places and colours, and blocks become rectangles.
func TestTerminalSVG(t *testing.T) {
	got := terminalSVG("a & b", "ab \x1b[1;31;7mc<\x1b[0m\n\x1b[32m\u2588\u2588\u2584\x1b[39m \u2591x\n")
	for _, want := range []string{"<title>a &amp; b</title>", `width="72" height="58"`,
		`<text class="fore" x="0" y="13" textLength="16">ab</text>`,
		`<rect class="red" x="24" y="0" width="16" height="17"/>`,
		`class="back bold" x="24" y="13" textLength="16">c&lt;</text>`,
		`<rect class="green" x="0" y="17" width="16" height="17"/>`,
		`<rect class="green" x="16" y="25.5" width="8" height="8.5"/>`,
		`<rect class="fore shade" x="32" y="17"`, `<text class="fore" x="40" y="30" textLength="8">x</text>`} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %s:\n%s", want, got)
		}
	}
}
