package checker

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestExcusesHaveAReach judges histories in groups of three. The first has a wrong lock. The second adds a disturbance
// that cannot have caused the violation, so it fails with the same causes. The third adds a disturbance that can have
// caused it, so it must not fail and must not pass. METHOD.md says which rule each group tests.
func TestExcusesHaveAReach(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/excuse/*.plain.jsonl")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, plain := range files {
		name := strings.TrimSuffix(plain, ".plain.jsonl")
		judged := func(kind string) []Verdict {
			verdicts, err := JudgeFile(name + "." + kind + ".jsonl")
			if err != nil {
				t.Fatalf("%s, %s: %v", name, kind, err)
			}
			return verdicts
		}
		want := failed(judged("plain"))
		if got := failed(judged("elsewhere")); len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: fails with %q; beside what cannot have caused it with %q", name, want, got)
		}
		covered := judged("covered")
		undecided := slices.ContainsFunc(covered, func(v Verdict) bool { return v.Status == Inconclusive })
		if causes := failed(covered); len(causes) > 0 || !undecided {
			t.Errorf("%s: beside what can have caused it: %q, undecided %v", name, causes, undecided)
		}
	}
}
