package main

import (
	"strings"
	"testing"
)

func TestWhatFailedIsReadFromEvents(t *testing.T) {
	const events = `{"Action":"run","Package":"hammerlock/a","Test":"TestX"}
{"Action":"output","Package":"hammerlock/a","Test":"TestX/one","Output":"    x_test.go:7: got 1, want 2\n"}
{"Action":"output","Package":"hammerlock/a","Test":"TestX/one","Output":"    x_test.go:8: and more\n"}
{"Action":"fail","Package":"hammerlock/a","Test":"TestX/one"}
{"Action":"fail","Package":"hammerlock/a","Test":"TestX"}
{"Action":"pass","Package":"hammerlock/a","Test":"TestY"}
{"Action":"fail","Package":"hammerlock/b","Test":"TestZ"}
{"Action":"fail","Package":"hammerlock/a"}
`
	f := failures{}
	for range 2 {
		if err := f.events(strings.NewReader(events)); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := f.write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `failures  test         first message
2         a.TestX/one  x_test.go:7: got 1, want 2
2         b.TestZ      (no message)
`
	if got := out.String(); got != want || f.total() != 4 {
		t.Errorf("got %d failures\n%swant\n%s", f.total(), got, want)
	}
	if err := f.read(t.TempDir()); err == nil {
		t.Error("a round without events is no round")
	}
}
