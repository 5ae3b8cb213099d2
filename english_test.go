package hammerlock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unplain are words in place of which a noun says who or what is meant: "a waiter", "another worker", "the process was paused".
var unplain = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody|stood still|stands still|by itself|is told|are told|so many|is none)\b`)

// mostUnplain is how often they stand in code and documents. It may only ever fall: TestPlainEnglish says to what.
const mostUnplain = 506

func TestPlainEnglish(t *testing.T) {
	count := 0
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
		count += len(unplain.FindAll(text, -1))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count > mostUnplain || count < mostUnplain-40 {
		t.Errorf("%d of the words %s: at most %d; if there are fewer now, lower mostUnplain", count, unplain, mostUnplain)
	}
}
