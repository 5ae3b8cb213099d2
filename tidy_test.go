// Package hammerlock_test keeps the tree tidy: what imports what, how long things get, and what nobody may do.
package hammerlock_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const (
	maxFunctionRows = 60
	maxFileRows     = 400
)

// module is the path of this one, which go.mod alone says.
var module = func() string {
	text, _ := os.ReadFile("go.mod")
	return modfile.ModulePath(text)
}()

// mayImport is the table of ARCHITECTURE.md: imports go down only. Tests are free. A star stands for programs.
var mayImport = map[string][]string{
	"history":            {},
	"model":              {"history"},
	"topologies":         {"topologies/links"},
	"topologies/links":   {},
	"certify":            {},
	"checker":            {"history", "model", "internal/human", "internal/glossary"},
	"locks":              {"history", "topologies"},
	"locks/catalogue":    {"history", "topologies", "locks"},
	"locks/known":        {"history", "topologies", "locks", "locks/catalogue"},
	"faults":             {"history", "topologies", "topologies/links", "internal/human"},
	"workload":           {"history", "topologies", "locks"},
	"scenarios":          {"history", "faults", "workload"},
	"explore":            {"history", "topologies", "checker", "locks", "workload"},
	"internal/human":     {},
	"internal/glossary":  {"history"},
	"results":            {"history", "certify", "checker", "internal/human", "internal/glossary"},
	"internal/story":     {"history", "checker", "explore"},
	"results/compare":    {"internal/human", "results"},
	"results/report":     {"history", "checker", "internal/human", "results", "results/compare"},
	"internal/measure":   {"history", "checker", "internal/human", "results", "internal/witness"},
	"internal/dashboard": {"internal/human", "results", "internal/measure"},
	"internal/web":       {"internal/human", "results", "results/report", "internal/measure"},
	"internal/crew":      {"history", "topologies", "locks", "workload", "results", "internal/driver"},
	"internal/driver":    {"history", "topologies", "locks"},
	"internal/service":   {"locks", "topologies", "workload"},
	"internal/fleet":     {"history", "topologies", "workload", "results", "internal/crew"},
	"internal/deployment": {"history", "topologies", "topologies/links", "workload", "results", "internal/measure",
		"internal/crew", "internal/service",
		"internal/wire", "internal/witness", "internal/program"},
	"internal/recording": {"history"},
	"internal/wire":      {"history"},
	"internal/witness":   {"history", "internal/human", "internal/wire"},
	"internal/attach":    {"topologies", "locks", "workload", "internal/human"},
	"internal/program": {"internal/measure", "history", "topologies", "faults", "results", "internal/human",
		"internal/wire", "internal/witness", "internal/crew"},
	"internal/breaker": {"history", "faults", "workload", "internal/crew", "internal/deployment", "internal/recording",
		"internal/wire", "internal/program"},
	"internal/harness": {"history", "topologies", "checker", "locks", "locks/catalogue", "faults", "workload",
		"scenarios", "internal/human", "results",
		"internal/attach", "internal/measure", "internal/crew", "internal/service", "internal/deployment",
		"internal/recording", "internal/breaker",
		"internal/driver", "explore", "internal/witness", "internal/program"},
	"internal/tour": {"topologies", "checker", "locks", "faults", "workload", "internal/human", "results",
		"internal/harness", "locks/known"},
	"internal/settings": {"internal/human"},
	"internal/cli": {"internal/settings", "history", "certify", "topologies", "checker", "locks", "faults", "workload",
		"scenarios", "explore", "internal/human", "results",
		"results/compare", "results/report", "internal/attach", "internal/measure", "internal/crew", "internal/service",
		"internal/harness", "internal/tour",
		"internal/dashboard", "internal/driver", "internal/glossary", "locks/known", "internal/fleet", "internal/web",
		"internal/program", "internal/witness",
		"internal/story"},
	"hammertest": {"history", "checker", "explore", "topologies", "locks", "workload", "scenarios", "results",
		"internal/crew", "internal/driver",
		"internal/harness"},
	"internal/browser": {},
	"internal/live":    {},
	"internal/scripts": {"internal/live"},
	"internal/testbed": {"topologies"},
	"cmd/*":            {"internal/cli"},

	"tools/kept": {"locks/known"},
	"tools/*": {"history", "certify", "model", "topologies", "locks", "locks/catalogue", "locks/known", "checker",
		"explore", "workload", "scenarios", "results",
		"internal/browser", "internal/human", "internal/harness", "internal/cli", "tools/kept"},

	"examples/pageviews": {"locks", "locks/catalogue", "internal/cli"},

	"beyond":            {"internal/crew", "beyond/postgres", "beyond/mysql", "beyond/etcd", "beyond/zookeeper"},
	"beyond/database":   {"history", "topologies", "locks", "workload"},
	"beyond/engine":     {"topologies"},
	"beyond/postgres":   {"history", "topologies", "locks", "workload", "beyond/database", "beyond/engine"},
	"beyond/mysql":      {"history", "topologies", "locks", "workload", "beyond/database", "beyond/engine"},
	"beyond/proof":      {"history"},
	"beyond/etcd":       {"history", "topologies", "locks", "beyond/proof", "beyond/engine"},
	"beyond/zookeeper":  {"history", "topologies", "locks", "beyond/proof", "beyond/engine"},
	"beyond/cmd/bench":  {"internal/cli", "beyond"},
	"beyond/cmd/verify": {"internal/cli", "beyond"},
	"beyond/cmd/compare": {"topologies", "checker", "locks", "locks/catalogue", "internal/human", "results",
		"internal/crew", "internal/cli", "beyond"},
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
func isMain(file string) bool {
	return strings.HasPrefix(strings.TrimPrefix(file, "beyond/"), "cmd/") || strings.HasPrefix(file, "examples/") ||
		strings.HasPrefix(file, "tools/") && !strings.HasPrefix(file, "tools/kept/")
}

func TestTidy(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" ||
			d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && file != "." && file != "beyond" {
			return filepath.SkipDir // a module of its own, for others to copy
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
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	if tidy, err := format.Source(text); err != nil || !bytes.Equal(tidy, text) {
		t.Errorf("%s: not as gofmt writes it (%v)", file, err)
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
		case *ast.CompositeLit:
			tidyVerdict(report, file, n)
		}
		return true
	})
}

// tidyVerdict reports a verdict that another package than checker makes. Other packages must call checker.Stated or
// checker.Ended, which make verdicts without a proof.
func tidyVerdict(report reporter, file string, n *ast.CompositeLit) {
	of := n.Type
	if list, is := of.(*ast.ArrayType); is && len(n.Elts) > 0 {
		if _, literal := n.Elts[0].(*ast.CompositeLit); literal {
			of = list.Elt
		}
	}
	if s, is := of.(*ast.SelectorExpr); is && s.Sel.Name == "Verdict" && len(n.Elts) > 0 && !isTest(file) {
		if room, is := s.X.(*ast.Ident); is && room.Name == "checker" {
			report(n.Pos(), "a verdict is made here: checker alone does that")
		}
	}
}

type reporter func(pos token.Pos, format string, args ...any)

func tidyImports(report reporter, file string, f *ast.File) {
	if isTest(file) {
		return
	}
	pkg := path.Dir(file)
	allowed, known := mayImport[pkg]
	if !known {
		allowed, known = mayImport[path.Dir(pkg)+"/*"] // programs that are alike
	}
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
		// it calls methods by their names: with it the linker keeps all methods of all libraries, 18 MB of them
		if path.Base(p) == "template" {
			report(i.Pos(), "no templates: results/report/page.go and internal/story do without")
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

// Each test is of one of three kinds; its name or its package says which.
//
// 1. A logic test uses no clock, process or port. Its time is that of testing/synctest.
//
// 2. A live test runs servers and processes, and waits for states. Its package is listed in .ci/live, or its name
// begins with TestLive.
//
// 3. A measuring test may say how long something took; other tests must not. Its name begins with TestAlone.
var (
	clocks = []string{"time.Since"}
	alive  = []string{"time.Now", "time.Since", "time.After", "time.Sleep", "net.Listen", "net.Dial", "net.DialTimeout",
		"exec.Command", "exec.CommandContext", "testbed.", "browser.",
		"live.Wait", "live.Again", "live.Need", "live.Python"}
)

func TestEachTestIsOfOneKind(t *testing.T) {
	live := strings.Fields(read(t, ".ci/live"))
	packages := map[string][]string{}
	for _, file := range goFiles(t) {
		if isTest(file) && !strings.HasPrefix(file, "beyond/") {
			packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
		}
	}
	for _, list := range []string{".ci/live", ".ci/plain"} {
		for _, name := range strings.Fields(read(t, list)) {
			if dir := path.Join(".", strings.TrimPrefix(strings.TrimPrefix(name, module), "/")); packages[dir] == nil {
				t.Errorf("%s lists %s, which has no tests", list, name)
			}
		}
	}
	for dir, files := range packages {
		tests := testsOf(t, files)
		isLive := slices.Contains(live, path.Join(module, dir))
		for name := range tests {
			named := func(kind string) bool { return strings.HasPrefix(name, kind) }
			if !named("Test") || named("TestAlone") || named("TestMain") {
				continue
			}
			if why := tests.reaches(name, clocks); why != "" {
				t.Errorf("%s: %s measures (%s), so it is named TestAlone..., or asserts something else", dir, name, why)
			}
			if why := tests.reaches(name, alive); why != "" && !isLive && !named("TestLive") {
				t.Errorf("%s: %s is no logic test (%s), so it is named TestLive...", dir, name, why)
			}
		}
	}
}

// goFiles lists what TestTidy looks at.
func goFiles(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go", "*/*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			file = filepath.ToSlash(file)
			if !strings.Contains(file, "testdata/") && !ofAnotherModule(file) {
				all = append(all, file)
			}
		}
	}
	return all
}

func ofAnotherModule(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// functions are those of the tests of a package by name, methods with a dot before it.
type functions map[string]calls

type calls struct {
	others, own []string // of other packages, as in time.Since, and of the package's tests
	virtual     bool     // in testing/synctest, where time is virtual
}

func testsOf(t *testing.T, files []string) functions {
	t.Helper()
	all := functions{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		imported := importNames(f)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			c, name := callsOf(fn.Body, imported), fn.Name.Name
			if fn.Recv != nil {
				name = "." + name
			}
			if _, twice := all[name]; twice { // of several types: nobody knows here which is meant
				c = calls{}
			}
			all[name] = c
		}
	}
	return all
}

func callsOf(body *ast.BlockStmt, imported map[string]string) (c calls) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			c.own = append(c.own, f.Name)
		case *ast.SelectorExpr:
			x, ok := f.X.(*ast.Ident)
			if !ok || imported[x.Name] == "" {
				c.own = append(c.own, "."+f.Sel.Name)
				break
			}
			c.others = append(c.others, path.Base(imported[x.Name])+"."+f.Sel.Name)
			c.virtual = c.virtual || imported[x.Name] == "testing/synctest" && f.Sel.Name == "Test"
		}
		return true
	})
	return c
}

// reaches names the first call in the list that a function makes, itself or through another function of the tests;
// empty = it makes none of them.
func (all functions) reaches(name string, listed []string) string {
	seen := map[string]bool{}
	var look func(name string) string
	look = func(name string) string {
		c, ok := all[name]
		if !ok || seen[name] || c.virtual {
			return ""
		}
		seen[name] = true
		for _, call := range c.others {
			for _, l := range listed {
				if call == l || strings.HasSuffix(l, ".") && strings.HasPrefix(call, l) {
					return name + " calls " + call
				}
			}
		}
		for _, own := range c.own {
			if why := look(own); why != "" {
				return why
			}
		}
		return ""
	}
	return look(name)
}
