package main

import (
	"bytes"
	"cmp"
	"context"
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
)

// mutated lists the correct locks of which mutants are made, each with its source files and a topology.
var mutated = []struct {
	lock, variable, topology string
	files                    []string
}{
	{"lease", "lease", "single", []string{"locks/catalogue/lease.go"}},
	{"watch", "watch", "single", []string{"locks/catalogue/watch.go"}},
	{"watchdog", "watchdog", "single", []string{"locks/catalogue/watchdog.go"}},
	{"reentrant", "reentrant", "single", []string{"locks/catalogue/reentrant.go"}},
	{"redisson", "redisson", "single", []string{"locks/catalogue/redisson.go", "locks/catalogue/hub.go"}},
	{"fair", "fair", "single", []string{"locks/catalogue/fair.go"}},
	{"spin", "spin", "single", []string{"locks/catalogue/spin.go"}},
	{"fenced", "fenced", "single", []string{"locks/catalogue/fenced.go"}},
	{"multi", "multi", "single", []string{"locks/catalogue/multi.go"}},
	{"redlock", "redlock", "redlock", []string{"locks/catalogue/redlock.go"}},
}

// mutant is a copy of a lock with one change. All copies are in one program, so each name that a copy declares has
// the number of its mutant.
type mutant struct {
	mutation
	lock, variable, topology string
	name                     string            // the lock's name in the program
	source                   string            // digest of the files without the change
	texts                    map[string][]byte // by file
}

// mutantsOfLocks lists all mutants. The order is the same in every run.
func mutantsOfLocks() (all []mutant, err error) {
	for _, l := range mutated {
		texts, err := renamed(l.files)
		if err != nil {
			return nil, err
		}
		var originals [][]byte
		for _, file := range l.files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			originals = append(originals, text)
		}
		source := digest(originals...)
		for at, file := range l.files {
			original := originals[at]
			places, err := mutations(file, original)
			copies, errCopies := mutations(file, texts[file])
			if err := errors.Join(err, errCopies); err != nil || len(places) != len(copies) {
				return nil, fmt.Errorf("%s: %d mutations, %d with other names: %w", file, len(places), len(copies), err)
			}
			seen := map[string]int{}
			for i, m := range places {
				m.shown(original)
				if seen[m.before+m.after]++; seen[m.before+m.after] > 1 {
					m.after += fmt.Sprintf(" // %d", seen[m.before+m.after])
				}
				number := len(all) + 1
				x := mutant{m, l.lock, numbered(l.variable, number), l.topology, fmt.Sprintf("%s-m%d", l.lock, number),
					source, map[string][]byte{}}
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
	return all, nil
}

// suffix is added to the declared names. Later, suffixed with the number of the mutant replaces it.
const (
	suffix   = "_m0000"
	suffixed = "_m%04d"
)

func numbered(name string, number int) string { return name + fmt.Sprintf(suffixed, number) }

// renamed returns the files by name. In them, each package-level name that they declare has the suffix.
func renamed(files []string) (map[string][]byte, error) {
	all, err := filepath.Glob("locks/catalogue/*.go")
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	info := types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	// Imports are not resolved, so errors about them are ignored.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := config.Check("catalogue", fset, parsed, &info)
	mine := func(o types.Object) bool {
		return o != nil && o.Parent() == pkg.Scope() && slices.Contains(files, fset.Position(o.Pos()).Filename)
	}
	places := map[string][]int{}
	for _, uses := range []map[*ast.Ident]types.Object{info.Defs, info.Uses} {
		for id, o := range uses {
			if v, ok := o.(*types.Var); ok && v.Embedded() { // an embedded field has the name of its type
				o = pkg.Scope().Lookup(v.Name())
			}
			if at := fset.Position(id.End()); mine(o) && slices.Contains(files, at.Filename) {
				places[at.Filename] = append(places[at.Filename], at.Offset)
			}
		}
	}
	texts := map[string][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(places[name], func(a, b int) int { return cmp.Compare(b, a) })
		for _, at := range slices.Compact(places[name]) {
			text = slices.Concat(text[:at], []byte(suffix), text[at:])
		}
		texts[name] = text
	}
	return texts, nil
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// mutantFile finds the number of a mutant in a compiler error, which names the mutant's file.
var mutantFile = regexp.MustCompile(`zz_m(\d+)_`)

// buildMutants builds verify with all mutants that compile, and returns these mutants. To find them, it builds
// package catalogue again and again, each time without the mutants that have errors.
func buildMutants(ctx context.Context, all []mutant, dir string) (verify string, _ []mutant, err error) {
	verify = filepath.Join(dir, "verify")
	for {
		overlay, err := writeOverlay(all, dir)
		if err != nil {
			return "", nil, err
		}
		build := func(args ...string) ([]byte, error) {
			args = append([]string{"build", "-overlay", overlay, "-gcflags=hammerlock/locks/catalogue=-e"}, args...)
			return exec.CommandContext(ctx, "go", args...).CombinedOutput()
		}
		out, err := build("./locks/catalogue")
		if err == nil {
			if out, err = build("-ldflags=-s -w", "-o", verify, "./cmd/verify"); err == nil {
				return verify, all, nil
			}
			return "", nil, fmt.Errorf("build verify: %w: %s", err, out)
		}
		wrong := map[string]bool{}
		for _, m := range mutantFile.FindAllStringSubmatch(string(out), -1) {
			wrong[m[1]] = true
		}
		if len(wrong) == 0 {
			return "", nil, fmt.Errorf("build the locks: %w: %s", err, out)
		}
		all = slices.DeleteFunc(all, func(m mutant) bool { return wrong[m.number()] })
		fmt.Println(len(wrong), "mutants do not compile")
	}
}

// number returns the number that the names of the mutant's files have.
func (m *mutant) number() string { return strings.TrimPrefix(m.name, m.lock+"-m") }

// writeOverlay writes the files of the mutants. It also writes an overlay, by which "go build" finds these files in
// package catalogue.
func writeOverlay(all []mutant, dir string) (file string, err error) {
	root, err := os.Getwd()
	replace := map[string]string{}
	put := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		replace[filepath.Join(root, "locks", "catalogue", name)] = path
		err = errors.Join(err, os.WriteFile(path, text, 0o600))
	}
	var list strings.Builder
	for _, m := range all {
		for file, text := range m.texts {
			put(fmt.Sprintf("zz_m%s_%s", m.number(), filepath.Base(file)), text)
		}
		fmt.Fprintf(&list, "\tadd(%s, %q)\n", m.variable, m.name)
	}
	put("zz_mutants.go",
		[]byte("package catalogue\n\nimport \"hammerlock/locks\"\n\nfunc init() {\n\tadd := func(s locks.Spec, "+
			"name string) { s.Name = name; All = append(All, s) }\n"+list.String()+"}\n"))
	text, errText := json.Marshal(map[string]map[string]string{"Replace": replace})
	file = filepath.Join(dir, "overlay.json")
	return file, errors.Join(err, errText, os.WriteFile(file, text, 0o600))
}
