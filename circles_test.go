package hammerlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inCircles lists, by room, how many of its files may use each other in circles. The numbers only go down. Rooms that
// are not listed have no such files.
var inCircles = map[string]int{
	"certify": 6, "explore": 21, "faults": 26, "hammertest": 2, "history": 11, "internal/attach": 2,
	"internal/breaker": 3, "internal/crew": 7, "internal/dashboard": 8,
	"internal/deployment": 6, "internal/driver": 6, "internal/fleet": 11, "internal/glossary": 2,
	"internal/harness": 21, "internal/measure": 10, "internal/program": 6, "internal/recording": 2,
	"internal/service": 2, "internal/settings": 5, "internal/web": 2, "internal/wire": 3,
	"internal/witness": 25, "locks": 3, "locks/catalogue": 38, "model": 10, "results": 14,
	"results/compare": 4, "results/report": 5, "scenarios": 12, "tools/kept": 2, "tools/mutants": 3,
	"tools/record": 4, "tools/simulate": 8, "topologies": 31, "topologies/links": 4, "workload": 23,
}

// TestFilesGoDown keeps the files of a room in an order in which each uses only files below it, so that somebody who
// reads from the bottom knows everything that a file uses.
func TestFilesGoDown(t *testing.T) {
	rooms := map[string]bool{}
	for _, f := range goFiles(t) {
		rooms[path.Dir(f)] = true
	}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		files := circles(t, room)
		if most := inCircles[room]; len(files) != most {
			t.Errorf("%s: %d files use each other in circles, and %d may: %s", room, len(files), most,
				strings.Join(files, " "))
		}
	}
}

// circles lists the files of a room that use themselves by way of other files. Tests are left out.
func circles(t *testing.T, room string) (files []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(room, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set, parsed := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	uses := map[string]map[string]bool{}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	of := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	// other packages are not loaded: what comes from them is unknown, and does not matter here
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	unit, _ := config.Check(room, set, parsed, &info)
	for at, o := range info.Uses {
		f, method := o.(*types.Func)
		method = method && f.Signature().Recv() != nil
		from, to := of(at.Pos()), of(o.Pos())
		if o.Pkg() != unit || from == to || o.Parent() != unit.Scope() && !method {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	for from := range uses {
		if reaches(uses, from, from, map[string]bool{}) {
			files = append(files, from)
		}
	}
	slices.Sort(files)
	return files
}

// reaches tells whether a file uses another one, directly or by way of files that were not visited yet.
func reaches(uses map[string]map[string]bool, from, to string, visited map[string]bool) bool {
	for next := range uses[from] {
		if next == to {
			return true
		}
		if !visited[next] {
			visited[next] = true
			if reaches(uses, next, to, visited) {
				return true
			}
		}
	}
	return false
}

// nothing imports each package as an empty one.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
