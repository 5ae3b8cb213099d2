package hammerlock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// unplain are words in place of which a noun says who or what is meant: "a waiter", "another worker", "the process was
// paused".
var unplain = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody|stood still|stands still|by itself|is told|are told|so many|is none)\b`)

// mostUnplain is how often they stand in code and documents, widest the columns that a line of code should have at
// most, with four for a tab, and mostWide how many lines have more: tables and texts that say more in one line. Both
// may only ever fall: TestBounds says to what.
const (
	mostUnplain = 502
	widest      = 120
	mostWide    = 620
)

func wideLines(text []byte) (n int) {
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\t", "    ")) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > widest {
			n++
		}
	}
	return n
}

func TestBounds(t *testing.T) {
	words, wide := 0, 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (file != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || file == "bin" || file == "results/runs"):
			return filepath.SkipDir
		case filepath.Ext(file) != ".md" && filepath.Ext(file) != ".go" || isTest(file):
			return nil
		}
		text, err := os.ReadFile(file)
		if words += len(unplain.FindAll(text, -1)); filepath.Ext(file) == ".go" {
			wide += wideLines(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if words > mostUnplain || words < mostUnplain-40 {
		t.Errorf("%d of the words %s: at most %d; if there are fewer now, lower mostUnplain", words, unplain, mostUnplain)
	}
	if wide > mostWide || wide < mostWide-40 {
		t.Errorf("%d lines of code have more than %d columns: at most %d; if there are fewer now, lower mostWide", wide, widest, mostWide)
	}
}
