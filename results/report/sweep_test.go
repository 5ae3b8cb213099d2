package report

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/results"
)

// TestAnExplorationShowsItsPicture: the page of a run with a picture contains it; no other page does.
func TestAnExplorationShowsItsPicture(t *testing.T) {
	for _, file := range []string{results.EnvelopeFile, results.SequenceFile} {
		showsPicture(t, file)
	}
}

func showsPicture(t *testing.T, file string) {
	t.Helper()
	dir := crowd{workers: 2, visits: 20, seed: 1}.save(t, t.TempDir(), func(*results.Run) {})
	const picture = `<svg xmlns="http://www.w3.org/2000/svg"></svg>`
	src := base64.StdEncoding.EncodeToString([]byte(picture))
	for _, want := range []bool{false, true} {
		if want {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(picture), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		page := filepath.Join(t.TempDir(), File)
		if err := Write(page, []string{dir}, Unsaved{}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "base64,"+src); got != want {
			t.Errorf("the page has the picture of %s: %v, want %v", file, got, want)
		}
	}
}
