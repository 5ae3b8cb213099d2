// Package hammerlock_test keeps the tree tidy: what imports what, how long things get, and what nobody may do.
package hammerlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module          = "hammerlock"
	maxFunctionRows = 60
	maxFileRows     = 400
)

// mayImport is the table of ARCHITECTURE.md: imports go down only. Tests are free.
var mayImport = map[string][]string{
	"history":             {},
	"topologies":          {},
	"checker":             {"history"},
	"locks":               {"history", "topologies"},
	"faults":              {"history", "topologies", "internal/human"},
	"workload":            {"history", "locks"},
	"scenarios":           {"faults", "workload"},
	"internal/human":      {},
	"results":             {"history", "checker", "internal/human"},
	"results/compare":     {"internal/human", "results"},
	"results/report":      {"history", "checker", "internal/human", "results"},
	"internal/measure":    {"history", "checker", "internal/human", "results"},
	"internal/dashboard":  {"internal/human", "results", "internal/measure"},
	"internal/crew":       {"history", "topologies", "locks", "workload", "results"},
	"internal/deployment": {"history", "topologies", "workload", "results", "internal/measure", "internal/crew"},
	"internal/recording":  {"history"},
	"internal/breaker":    {"history", "faults", "workload", "internal/crew", "internal/deployment", "internal/recording"},
	"internal/harness": {"history", "topologies", "checker", "locks", "faults", "workload", "scenarios", "internal/human", "results",
		"internal/measure", "internal/crew", "internal/deployment", "internal/recording", "internal/breaker"},
	"internal/matrix": {"history", "topologies", "checker", "locks", "faults", "workload", "internal/human", "results",
		"internal/harness"},
	"internal/cli": {"history", "topologies", "checker", "locks", "faults", "workload", "scenarios", "internal/human", "results",
		"results/compare", "results/report", "internal/measure", "internal/crew", "internal/harness", "internal/matrix", "internal/dashboard"},
	"internal/scripts": {},
	"cmd/bench":        {"internal/cli"},
	"cmd/verify":       {"internal/cli"},
}

// banned are calls that hide what a reader must see: time that passes, contexts and exits from nowhere, luck.
var banned = map[string]func(file string) bool{
	"time.Sleep":         func(string) bool { return true },
	"context.Background": func(f string) bool { return !isTest(f) && !isMain(f) },
	"context.TODO":       func(string) bool { return true },
	"os.Exit":            func(f string) bool { return !isTest(f) && !isMain(f) },
	"log.Fatal":          func(string) bool { return true },
}

// seeded are the functions of math/rand that do not draw from the global source.
var seeded = []string{"New", "NewPCG", "NewZipf", "NewChaCha8", "Rand", "Zipf", "PCG", "Source"}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }
func isMain(file string) bool { return strings.HasPrefix(file, "cmd/") }

func TestTidy(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(file) == ".go" {
			tidyFile(t, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func tidyFile(t *testing.T, file string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	report := func(pos token.Pos, format string, args ...any) {
		t.Helper()
		t.Errorf("%s:%d: "+format, append([]any{file, fset.Position(pos).Line}, args...)...)
	}
	if rows := fset.Position(f.FileEnd).Line; rows > maxFileRows && !isTest(file) {
		report(f.Package, "%d lines, at most %d", rows, maxFileRows)
	}
	tidyImports(report, file, f)
	names := importNames(f)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			tidyFunction(report, fset, n)
		case *ast.SelectorExpr:
			tidyCall(report, file, names, n)
		}
		return true
	})
}

type reporter func(pos token.Pos, format string, args ...any)

func tidyImports(report reporter, file string, f *ast.File) {
	if isTest(file) {
		return
	}
	pkg := path.Dir(file)
	allowed, known := mayImport[pkg]
	if !known {
		report(f.Package, "package %s is not in the table of imports", pkg)
		return
	}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if ours, ok := strings.CutPrefix(p, module+"/"); ok && !slices.Contains(allowed, ours) {
			report(i.Pos(), "%s may not import %s", pkg, ours)
		}
		if pkg == "history" && strings.Contains(p, ".") {
			report(i.Pos(), "history may import the standard library only")
		}
	}
}

func tidyFunction(report reporter, fset *token.FileSet, f *ast.FuncDecl) {
	if f.Name.Name == "init" && f.Recv == nil {
		report(f.Pos(), "no init functions")
	}
	if rows := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; rows > maxFunctionRows {
		report(f.Pos(), "%s has %d lines, at most %d", f.Name.Name, rows, maxFunctionRows)
	}
}

func tidyCall(report reporter, file string, names map[string]string, s *ast.SelectorExpr) {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return
	}
	p, imported := names[x.Name]
	if !imported {
		return
	}
	call := path.Base(p) + "." + s.Sel.Name
	if is, ok := banned[call]; ok && is(file) {
		report(s.Pos(), "%s is banned here", call)
	}
	if (p == "math/rand" || p == "math/rand/v2") && !slices.Contains(seeded, s.Sel.Name) {
		report(s.Pos(), "%s.%s draws from the global source", p, s.Sel.Name)
	}
}

// importNames maps the names that a file uses to import paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(strings.TrimSuffix(p, "/v2"))
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	return names
}
