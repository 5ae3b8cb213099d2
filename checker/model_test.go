package checker

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hammerlock/history"
	"hammerlock/model"
)

// inWords is a story in a few words: mistakes of the lock, losses of the servers, or what the model does not support.
func inWords(s model.Story) string {
	var words []string
	for _, x := range s.Steps {
		switch {
		case x.Deviation != nil:
			words = append(words, x.Deviation.Name)
		case x.Event != model.Effect && x.Event != model.LeaseEnd:
			words = append(words, x.Event.String())
		}
	}
	if s.Status != model.Explained {
		words = append(words, "not explained", s.Missing)
	}
	return strings.Join(words, ", ")
}

// TestStories tells the stories of histories whose verdict depends on what the servers can have forgotten.
func TestStories(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		// A single server cannot answer "ok" to both releases, whatever it forgot.
		"stories/forgot-nodes1.jsonl": "forgotten, false-release",
		// After the incident, the key of the first holder was seen on the server: it had forgotten nothing.
		"stories/incident-but-key-seen.jsonl":   "double-grant, false-release",
		"stories/told-lost-then-released.jsonl": "false-release",
		"stories/sight-without-end.jsonl":       "ttl-too-long",
		// Exactly three of five sites may have granted the lock, and one of these came back empty.
		"stories/redlock-one-of-five-restarts.jsonl":     "forgotten",
		"stories/ordered-readers-in-one-batch.jsonl":     "",
		"excuse/double-grant-counter.plain.jsonl":        "double-grant",
		"excuse/double-grant-counter.covered.jsonl":      "forgotten",
		"excuse/double-grant-before.covered.jsonl":       "forgotten",
		"excuse/double-grant-role.covered.jsonl":         "forgotten",
		"excuse/double-release.plain.jsonl":              "double-release",
		"excuse/premature-loss.plain.jsonl":              "premature-loss",
		"excuse/extended-after-the-end.plain.jsonl":      "silent-reacquire",
		"excuse/extended-after-the-end.covered.jsonl":    "stretched",
		"excuse/premature-loss-sent-twice.covered.jsonl": "",
	} {
		h, err := history.Open(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		list, err := Stories(h)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			got = append(got, inWords(s.Story))
		}
		if text := strings.Join(slices.Compact(got), "; "); text != want {
			t.Errorf("%s: the story has %q, want %q", file, text, want)
		}
	}
}
