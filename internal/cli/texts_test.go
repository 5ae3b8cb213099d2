package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var inText = regexp.MustCompile(`(?:^|[^\w-])--([a-z][a-z0-9-]*[a-z0-9])`)

// elsewhere lists flags that every command has, and flags of the servers that the suite starts.
var elsewhere = []string{"help", "version", "bind", "port", "save", "appendonly", "dir", "sentinel"}

// TestTextsNameFlagsThatThereAre: each flag in a message of the suite is a flag that can be typed.
func TestTextsNameFlagsThatThereAre(t *testing.T) {
	t.Parallel()
	known := slices.Clone(elsewhere)
	var flagsOf func(c *cobra.Command)
	flagsOf = func(c *cobra.Command) {
		add := func(f *pflag.Flag) { known = append(known, f.Name) }
		c.Flags().VisitAll(add)
		c.PersistentFlags().VisitAll(add)
		for _, sub := range c.Commands() {
			flagsOf(sub)
		}
	}
	flagsOf(Env{}.benchCommand())
	flagsOf(Env{}.verifyCommand())
	found := 0
	for file, text := range literals(t, "../..") {
		for _, m := range inText.FindAllStringSubmatch(text, -1) {
			if found++; !slices.Contains(known, m[1]) {
				t.Errorf("%s: %s has no flag --%s", file, text, m[1])
			}
		}
	}
	if found < 300 {
		t.Errorf("%d flags were found in texts: the test does not see what is said", found)
	}
}

// literals returns the string literals in the suite's own packages, each with one place where it occurs.
func literals(t *testing.T, root string) map[string]string {
	all, files := map[string]string{}, token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() &&
			(slices.Contains([]string{"beyond", "drivers", "tools", "record", "bin", "testdata"}, d.Name()) ||
				len(d.Name()) > 2 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				all[files.Position(l.Pos()).String()] = l.Value
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
