package attach

import (
	"slices"
	"strings"
	"testing"
)

// TestWholeIsWhatWasGiven: the shown text has no password, and the executed text is the original.
func TestWholeIsWhatWasGiven(t *testing.T) {
	for _, c := range []struct {
		args    []string
		setting string
		given   []string
	}{
		{[]string{"wire", "--to", "redis://:" + secret + "@h", "--", "prog", "redis://bob:" + secret + "@h/1",
			"redis://h"}, "",
			[]string{"prog", "redis://bob:" + secret + "@h/1", "redis://h"}},
		{[]string{
			"wire", "--", "prog", "--a", "redis://:" + secret + "@h", "--b=redis://h/2", "rediss://:" + secret + "2@h",
		}, "",
			[]string{"prog", "--a", "redis://:" + secret + "@h", "--b=redis://h/2", "rediss://:" + secret + "2@h"}},
		{[]string{"wire", "--env", "U=redis://:{password}@{host}:{port}"}, "env",
			[]string{"U=redis://:{password}@{host}:{port}"}},
		{[]string{"http", "--serve=prog redis://bob:" + secret + "@h/1 --mail x@y", "--serve", "two redis://bob:" +
			secret + "%20@h/1"},
			"serve", []string{
				"prog redis://bob:" + secret + "@h/1 --mail x@y", "two redis://bob:" + secret + "%20@h/1",
			}},
		{[]string{"http", "--serve", "prog redis://bob:" + secret + "/#?@h,redis://b:@i,redis://:" + secret + "@h/2"},
			"serve",
			[]string{"prog redis://bob:" + secret + "/#?@h,redis://b:@i,redis://:" + secret + "@h/2"}},
		{[]string{"--quiet", "prog", "redis://:" + secret + "@h"}, "", []string{"prog", "redis://:" + secret + "@h"}},
	} {
		clean, s := Take(c.args, nil)
		if text := strings.Join(clean, " "); strings.Contains(text, secret) {
			t.Errorf("%q is shown", text)
		}
		var shown []string
		for i, arg := range clean {
			if _, value, named := strings.Cut(arg, "--"+c.setting+"="); named && c.setting != "" {
				shown = append(shown, value)
			} else if i > 0 && c.setting != "" && clean[i-1] == "--"+c.setting || c.setting == "" &&
				i >= len(clean)-len(c.given) {
				shown = append(shown, arg)
			}
		}
		if got := s.Whole(c.setting, shown); !slices.Equal(got, c.given) {
			t.Errorf("got  %q\nwant %q", got, c.given)
		}
	}
	// A plan's file is read later, so its values are taken one by one.
	_, s := Take(nil, nil)
	given := "prog redis://bob:" + secret + "@h/1"
	if got := s.Whole("serve", []string{s.Take("serve", given)}); got[0] != given {
		t.Errorf("got %q", got)
	}
}
