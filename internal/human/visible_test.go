package human

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestVisibleEscapesWhatATerminalObeys(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":            "plain\ttext\n",
		"µs, –, 日本\n":              "µs, –, 日本\n",
		"a\x1b]0;owned\a\x1b[2Jb":  `a\u001b]0;owned\u0007\u001b[2Jb`,
		"\r\b\x7f\u0085\u009b31m":  `\u000d\u0008\u007f\u0085\u009b31m`,
		"user\u202egpj.exe\u2066x": `user\u202egpj.exe\u2066x`,
		"\x9b31m\xff\xfe":          `\x9b31m\xff\xfe`,
		"":                         "",
	} {
		var whole, bytewise strings.Builder
		if _, err := io.WriteString(Visible(&whole), text); err != nil || whole.String() != want {
			t.Errorf("%q: %q, want %q, %v", text, whole.String(), want, err)
		}
		if _, err := io.Copy(Visible(&bytewise),
			struct{ io.Reader }{iotest.OneByteReader(strings.NewReader(text))}); err != nil ||
			bytewise.String() != want {
			t.Errorf("%q byte by byte: %q, want %q, %v", text, bytewise.String(), want, err)
		}
	}
}

func TestVisibleLeavesJSONTheSame(t *testing.T) {
	const name = "a\x1b[2J\x7f\u009b\u202eµ"
	var out strings.Builder
	if err := json.NewEncoder(Visible(&out)).Encode(name); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != name ||
		strings.ContainsAny(out.String(), "\x1b\x7f\u009b\u202e") {
		t.Errorf("%q became %q, %v", name, out.String(), err)
	}
}
