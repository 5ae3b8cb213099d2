package checker

import (
	"slices"
	"testing"

	"hammerlock/history"
)

// TestNamePages: a summary and a story name each page once, if its name is known.
func TestNamePages(t *testing.T) {
	v := Verdict{Summary: "page 1 and page 1 and page 7", Story: []string{"of page 0", "of page 1 and page 0"}}
	c := Case{History: &history.History{Header: history.Header{Names: []string{"lock:a", "lock:b"}}}}
	c.namePages(&v)
	story := []string{"of page 0 (lock:a)", "of page 1 (lock:b) and page 0"}
	if v.Summary != "page 1 (lock:b) and page 1 and page 7" || !slices.Equal(v.Story, story) {
		t.Errorf("%q %q", v.Summary, v.Story)
	}
}
