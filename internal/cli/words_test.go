package cli_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/cli"
	"hammerlock/internal/driver"
	"hammerlock/internal/glossary"
	"hammerlock/results"
	"hammerlock/scenarios"
)

// TestEveryWordOnTheScreenIsExplained: "bench explain" knows each heading of a row or column, exactly as printed. It
// also knows every verdict, cause, check, scenario, metric and claim.
func TestEveryWordOnTheScreenIsExplained(t *testing.T) {
	words := []string{"metrics"}
	for _, dir := range []string{"../../results", "../../results/compare"} {
		found := headings(t, dir)
		if len(found) < 5 {
			t.Errorf("%s: only %q were found: the test does not see what is written there", dir, found)
		}
		words = append(words, found...)
	}
	for _, s := range scenarios.All {
		words = append(words, s.Name)
	}
	for _, c := range slices.Concat(checker.All, checker.OfServices) {
		words = append(append(words, c.Name), c.Causes...)
	}
	for s := range checker.NotJudged + 1 {
		words = append(words, s.String())
	}
	for _, m := range results.Metrics {
		words = append(words, m.Name)
	}
	for _, c := range driver.Claims() {
		words = append(words, c[0])
	}
	slices.Sort(words)
	var out, problems bytes.Buffer
	for _, w := range slices.Compact(words) {
		if code := cli.Bench(t.Context(),
			cli.Env{Args: []string{"explain", w}, Stdout: &out, Stderr: &problems}); code != cli.Passed {
			t.Errorf("%q stands on a screen, and nothing explains it", w)
		}
	}
}

// The function headings returns the headings of rows and columns that the files of a package print. It finds them in
// calls with literal texts.
func headings(t *testing.T, dir string) (all []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				all = append(all, headingsOf(n)...)
			case *ast.CompositeLit:
				named := func(e ast.Expr) bool { _, ok := e.(*ast.BasicLit); return ok }
				if n.Type == nil && len(n.Elts) > 3 && slices.IndexFunc(n.Elts, func(e ast.Expr) bool {
					return !named(e)
				}) < 0 {
					all = append(all, literalsIn(n)...)
				}
			case *ast.ValueSpec:
				if strings.HasSuffix(n.Names[0].Name, "Head") && len(n.Values) == 1 {
					all = append(all, literalsIn(n.Values[0])...)
				}
			}
			return true
		})
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.Trim(s, " -") == "" })
}

// headingsOf returns the headings that a call prints: the label of a fact or row, or the columns of a line.
func headingsOf(call *ast.CallExpr) []string {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	var texts []string
	for _, a := range call.Args {
		texts = append(texts, literalsIn(a)...)
	}
	switch {
	case len(texts) == 0:
	case name == "Fact", name == "row" && len(call.Args) == 2 && literalsIn(call.Args[0]) != nil:
		return literalsIn(call.Args[0])
	case name == "Line" && strings.Contains(texts[0], "\t") && !strings.Contains(texts[0], "%s"):
		return strings.Split(strings.ReplaceAll(texts[0], "%%", "%"), "\t")
	case name == "Line" && len(texts) > 2:
		return slices.DeleteFunc(texts, func(s string) bool { return strings.Contains(s, "%") })
	}
	return nil
}

// literalsIn returns the text of a literal, or of those in a list.
func literalsIn(x ast.Expr) (all []string) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			return []string{text}
		}
	case *ast.CompositeLit:
		for _, e := range x.Elts {
			all = append(all, literalsIn(e)...)
		}
	}
	return all
}

// TestEveryCauseIsExplained: the glossary has every cause with which a verdict can fail.
func TestEveryCauseIsExplained(t *testing.T) {
	seen := map[glossary.Word]bool{}
	for _, w := range glossary.All {
		entry := glossary.Word{Name: w.Name, Group: w.Group}
		if seen[entry] || w.Name != strings.ToLower(w.Name) || !strings.HasSuffix(w.Means, ".") ||
			!slices.Contains(glossary.Groups, w.Group) {
			t.Errorf("twice, not in lower case, no sentence, or of no group: %+v", w)
		}
		seen[entry] = true
	}
	for _, c := range slices.Concat(checker.All, checker.OfServices) {
		for _, cause := range c.Causes {
			if !seen[glossary.Word{Name: cause, Group: glossary.Causes}] {
				t.Errorf("%s fails with %s, which internal/glossary does not explain", c.Name, cause)
			}
		}
	}
}

// TestEveryCauseHasARemedy: the glossary has each cause that breaks a claim, and a remedy for each cause. A remedy ends
// with a pointer to files that exist.
func TestEveryCauseHasARemedy(t *testing.T) {
	for _, claim := range history.AllClaims {
		for _, name := range claim.Causes {
			if glossary.FindCause(name).Name == "" {
				t.Errorf("%s: %s is no cause", claim.Name, name)
			}
		}
	}
	for _, c := range glossary.AllCauses {
		remedy, see, ok := strings.Cut(strings.TrimSuffix(c.Remedy, "."), ". See ")
		if !ok || len(remedy) < 20 || !strings.HasSuffix(c.Remedy, ".") {
			t.Errorf("%s: %q is no sentence with a pointer", c.Name, c.Remedy)
		}
		for file := range strings.SplitSeq(see, ", ") {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil || strings.Contains(file, "broken") {
				t.Errorf("%s points to %s: %v", c.Name, file, err)
			}
		}
	}
}
