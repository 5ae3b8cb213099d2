package hammerlock_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutated are the right locks whose sources are changed: each with its files and a topology that it fits.
var mutated = []struct {
	lock, variable, topology string
	files                    []string
}{
	{"lease", "lease", "single", []string{"locks/lease.go"}},
	{"watch", "watch", "single", []string{"locks/watch.go"}},
	{"watchdog", "watchdog", "single", []string{"locks/watchdog.go"}},
	{"reentrant", "reentrant", "single", []string{"locks/reentrant.go"}},
	{"redisson", "redisson", "single", []string{"locks/redisson.go", "locks/hub.go"}},
	{"fair", "fair", "single", []string{"locks/fair.go"}},
	{"spin", "spin", "single", []string{"locks/spin.go"}},
	{"fenced", "fenced", "single", []string{"locks/fenced.go"}},
	{"multi", "multi", "single", []string{"locks/multi.go"}},
	{"redlock", "redlock", "redlock", []string{"locks/redlock.go"}},
}

// mutant is a copy of a lock with one mutation. All copies stand side by side in one program: each has the names of its files
// with a number of its own.
type mutant struct {
	mutation
	lock, variable, topology string
	name                     string            // as the program knows it
	source                   string            // a digest of the files without the mutation
	texts                    map[string][]byte // of its files
}

// mutantsOfLocks lists every mutant, the same in every run.
func mutantsOfLocks(t *testing.T) (all []mutant) {
	t.Helper()
	for _, l := range mutated {
		texts, source := renamed(t, l.files), sourcesOf(t, l.files)
		for _, file := range l.files {
			original := sourceOf(t, file)
			places, err := mutations(file, original)
			copies, errCopies := mutations(file, texts[file])
			if err := errors.Join(err, errCopies); err != nil || len(places) != len(copies) {
				t.Fatalf("%s: %d mutations, %d with other names: %v", file, len(places), len(copies), err)
			}
			seen := map[string]int{}
			for i, m := range places {
				m.shown(original)
				if seen[m.before+m.after]++; seen[m.before+m.after] > 1 {
					m.after += fmt.Sprintf(" // %d", seen[m.before+m.after])
				}
				number := len(all) + 1
				x := mutant{m, l.lock, numbered(l.variable, number), l.topology, fmt.Sprintf("%s-m%d", l.lock, number), source, map[string][]byte{}}
				for name, text := range texts {
					if name == file {
						text = copies[i].apply(text)
					}
					x.texts[name] = bytes.ReplaceAll(text, []byte(suffix), []byte(fmt.Sprintf(suffixed, number)))
				}
				all = append(all, x)
			}
		}
	}
	return all
}

// suffix stands behind names until the number of the mutant is known.
const (
	suffix   = "_m0000"
	suffixed = "_m%04d"
)

func numbered(name string, number int) string { return name + fmt.Sprintf(suffixed, number) }

// renamed are the texts of files with a suffix behind every name that they declare for the package.
func renamed(t *testing.T, files []string) map[string][]byte {
	t.Helper()
	all, err := filepath.Glob("locks/*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	info := types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	// What other packages declare is not known, and not needed: errors of that are no errors here.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := config.Check("locks", fset, parsed, &info)
	mine := func(o types.Object) bool {
		return o != nil && o.Parent() == pkg.Scope() && slices.Contains(files, fset.Position(o.Pos()).Filename)
	}
	places := map[string][]int{}
	for _, uses := range []map[*ast.Ident]types.Object{info.Defs, info.Uses} {
		for id, o := range uses {
			if v, ok := o.(*types.Var); ok && v.Embedded() { // named as its type
				o = pkg.Scope().Lookup(v.Name())
			}
			if at := fset.Position(id.End()); mine(o) && slices.Contains(files, at.Filename) {
				places[at.Filename] = append(places[at.Filename], at.Offset)
			}
		}
	}
	texts := map[string][]byte{}
	for _, name := range files {
		text := sourceOf(t, name)
		slices.SortFunc(places[name], func(a, b int) int { return cmp.Compare(b, a) })
		for _, at := range slices.Compact(places[name]) {
			text = slices.Concat(text[:at], []byte(suffix), text[at:])
		}
		texts[name] = text
	}
	return texts
}

// noImports imports nothing.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// mutantFile finds the number of the mutant that the compiler complains of.
var mutantFile = regexp.MustCompile(`zz_m(\d+)_`)

// buildMutants builds verify with all mutants as locks of its catalogue, and returns those that compile. It builds the package
// alone until it knows them.
func buildMutants(t *testing.T, all []mutant, program string) []mutant {
	t.Helper()
	dir := t.TempDir()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		replace := map[string]string{}
		put := func(name string, text []byte) {
			path := filepath.Join(dir, name)
			replace[filepath.Join(root, "locks", name)] = path
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var list strings.Builder
		for _, m := range all {
			for file, text := range m.texts {
				put(fmt.Sprintf("zz_m%s_%s", strings.TrimPrefix(m.name, m.lock+"-m"), filepath.Base(file)), text)
			}
			fmt.Fprintf(&list, "\tadd(%s, %q)\n", m.variable, m.name)
		}
		put("zz_mutants.go", []byte("package locks\n\nfunc init() {\n\tadd := func(s Spec, name string) { s.Name = name; All = append(All, s) }\n"+list.String()+"}\n"))
		overlay := filepath.Join(dir, "overlay.json")
		text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
		if err := errors.Join(err, os.WriteFile(overlay, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "build", "-overlay", overlay, "-gcflags=hammerlock/locks=-e", "./locks").CombinedOutput()
		if err == nil {
			out, err = exec.Command("go", "build", "-overlay", overlay, "-gcflags=hammerlock/locks=-e", "-ldflags=-s -w", "-o", program, "./cmd/verify").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return all
		}
		wrong := map[string]bool{}
		for _, m := range mutantFile.FindAllStringSubmatch(string(out), -1) {
			wrong[m[1]] = true
		}
		if len(wrong) == 0 {
			t.Fatalf("%v: %s", err, out)
		}
		all = slices.DeleteFunc(all, func(m mutant) bool { return wrong[strings.TrimPrefix(m.name, m.lock+"-m")] })
		t.Logf("%d mutants do not compile", len(wrong))
	}
}
