package main

import (
	"fmt"
	"go/format"
	"slices"
	"testing"
)

// TestMutationsOfASource: the list is complete, and each mutation is still valid Go.
func TestMutationsOfASource(t *testing.T) {
	text := []byte("package p\n\nvar s = script(`if redis.call(\"GET\", KEYS[1]) == ARGV[1] then return 0 end`)\n\n" +
		"func f(n int) error {\n\tdefer g()\n\tif n > 2 && !h() {\n\t\tg()\n\t\treturn ErrBusy\n\t}\n" +
		"\terr := send(\"nx\", n+7)\n\treturn err\n}\n")
	all, err := mutations("p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, fmt.Sprintf("%d %s -> %s", m.line, m.what, m.by))
		if _, err := format.Source(m.apply(text)); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
	want := []string{`3 == -> ~=`, `3 return 0 -> return 1`, `3 "GET", KEYS[1] -> "GET", KEYS[1] .. "x"`,
		`3 ARGV[1] -> ARGV[2]`,
		`6 defer g() -> _ = func() { g() }`, `7 && -> ||`, `7 > -> <=`, `7 2 -> 3`, `7 ! -> `,
		`8 g() -> _ = func() { g() }`, `9 ErrBusy -> ErrLost`,
		`11 "nx" -> `, `11 + -> -`, `11 7 -> 8`, `12 err -> nil`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
