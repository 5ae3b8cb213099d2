package hammerlock_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hammerlock/internal/live"
)

// recipe is a row of the table in CONTRIBUTING.md: the files that it names, and what is to be run then.
type recipe struct {
	name, row       string
	files, commands []string // with NAME for what is added
}

var (
	rows   = regexp.MustCompile(`(?m)^\| (an? \w+) \|(.*)\|(.*)\|$`)
	quoted = regexp.MustCompile("`([^`]+)`")
)

func recipes(document string) (all []recipe) {
	for _, row := range rows.FindAllStringSubmatch(document, -1) {
		r := recipe{name: row[1], row: row[0]}
		for _, m := range quoted.FindAllStringSubmatch(row[2], -1) {
			if strings.HasSuffix(m[1], ".go") {
				r.files = append(r.files, m[1])
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(row[3], -1) {
			r.commands = append(r.commands, m[1])
		}
		all = append(all, r)
	}
	return all
}

// entered is the name of an entry that a patch adds to a file that is there.
var entered = regexp.MustCompile(`(?m)^\+.*\bName: +"([a-z-]+)"`)

// thing returns the name of what a patch adds: from the new file that the recipe names first, or from a new entry in
// an existing file. It returns "" if the patch does not add that file.
func (r *recipe) thing(patch string) string {
	switch {
	case len(r.files) == 0:
		return ""
	case !strings.Contains(r.files[0], "NAME"):
		if m := entered.FindStringSubmatch(patch); m != nil {
			return m[1]
		}
		return r.name
	}
	before, after, _ := strings.Cut(r.files[0], "NAME")
	m := regexp.MustCompile("b/" + regexp.QuoteMeta(before) + `(\w+)` + regexp.QuoteMeta(after) +
		"\nnew file").FindStringSubmatch(patch)
	if m == nil {
		return ""
	}
	return m[1]
}

// mistakes says where the patch that follows a recipe changes other files than the recipe names.
func (r *recipe) mistakes(patch string) (list []string) {
	thing := r.thing(patch)
	if thing == "" {
		list = append(list, r.name+": its patch does not add the file that the recipe names first")
	}
	named := map[string]bool{}
	for _, file := range r.files {
		named[strings.ReplaceAll(file, "NAME", thing)] = false
	}
	for _, m := range regexp.MustCompile(`(?m)^diff --git a/(\S+)`).FindAllStringSubmatch(patch, -1) {
		if _, ok := named[m[1]]; !ok {
			list = append(list, r.name+": the recipe does not name "+m[1])
		}
		named[m[1]] = true
	}
	for file, changed := range named {
		if !changed {
			list = append(list, r.name+": the recipe names "+file+", its patch does not change it")
		}
	}
	if len(r.commands) == 0 {
		list = append(list, r.name+": nothing is to be run")
	}
	return list
}

// wrongRecipes lists the mistakes of all recipes in a document, and the patches for which there is no recipe. The
// map patches has the names of recipes as keys.
func wrongRecipes(document string, patches map[string]string) (list []string) {
	patches = maps.Clone(patches)
	for _, r := range recipes(document) {
		list = append(list, r.mistakes(patches[r.name])...)
		delete(patches, r.name)
	}
	for name := range patches {
		list = append(list, name+": there is a patch and no recipe")
	}
	return list
}

// readPatches returns the patches by the names of their recipes.
func readPatches(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/contributing/*.patch")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d patches, %v", len(files), err)
	}
	patches := map[string]string{}
	for _, file := range files {
		patches[strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".patch"), "-", " ")] = read(t, file)
	}
	return patches
}

// TestRecipesNameTheirFiles: each recipe of CONTRIBUTING.md has a patch that follows it. The patch must change
// exactly the files that the recipe names.
func TestRecipesNameTheirFiles(t *testing.T) {
	for _, m := range wrongRecipes(read(t, "CONTRIBUTING.md"), readPatches(t)) {
		t.Error(m)
	}
}

// TestPatchesFitTheTree: each can be applied, though perhaps not after another one.
func TestPatchesFitTheTree(t *testing.T) {
	for name := range readPatches(t) {
		in(t, ".", "git apply --check testdata/contributing/"+strings.ReplaceAll(name, " ", "-")+".patch")
	}
}

// TestAWrongRecipeIsFound makes each recipe wrong in several ways: its row is missing, a file is missing, has
// another path or is too many, or the recipe names no command.
func TestAWrongRecipeIsFound(t *testing.T) {
	document, patches := read(t, "CONTRIBUTING.md"), readPatches(t)
	for _, r := range recipes(document) {
		run := rows.FindStringSubmatch(r.row)[3]
		wrong := map[string]string{
			"no row":         "",
			"nothing to run": strings.Replace(r.row, run, " ", 1),
			"one file more":  strings.Replace(r.row, "`"+r.files[0]+"`", "`"+r.files[0]+"`, `docs/further.go`", 1),
		}
		for _, file := range r.files {
			wrong["without "+file] = strings.Replace(r.row, "`"+file+"`", "a file", 1)
			wrong["elsewhere "+file] = strings.Replace(r.row, "`"+file+"`", "`elsewhere/"+file+"`", 1)
		}
		for what, row := range wrong {
			if got := wrongRecipes(strings.Replace(document, r.row, row, 1), patches); row == r.row || len(got) == 0 {
				t.Errorf("%s, %s: nothing is wrong with %s", r.name, what, row)
			}
		}
	}
}

// inCopy precedes the commands that compile the copy, and makes them faster. It turns inlining off: nearly all
// packages use the types of go-redis, and compile more than a thousand wrappers of their methods. Inlining takes two
// fifths of that work. It also turns off vet and debug data, which only the original tree needs.
const inCopy = `export GOFLAGS="$GOFLAGS -gcflags=hammerlock/...=-l -vet=off -ldflags=-w"; `

// TestRecipesWork follows all recipes in a copy of the tree, and runs the commands that the recipes name. The tests
// of a package run together, and the same command runs only once. Commands that run all tests of a package run only
// at night, because the tree's own CI runs these tests, too.
func TestRecipesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a copy of the tree")
	}
	dir, patches := copyOfTheTree(t), readPatches(t)
	all := recipes(read(t, "CONTRIBUTING.md"))
	in(t, dir, "git init -q")
	var commands []string
	for _, r := range all {
		in(t, dir, "git apply testdata/contributing/"+strings.ReplaceAll(r.name, " ", "-")+".patch")
		for _, command := range r.commands {
			commands = append(commands, strings.ReplaceAll(command, "NAME", r.thing(patches[r.name])))
		}
	}
	// This compiles all, and links nothing.
	in(t, dir, inCopy+"go list -export ./... >/dev/null")
	if !live.Nightly() {
		commands = slices.DeleteFunc(commands, func(c string) bool {
			return strings.HasPrefix(c, "go test -short") && !strings.Contains(c, " -run ")
		})
	}
	var writes []string // one after the other
	t.Run("tests", func(t *testing.T) {
		for _, command := range together(commands) {
			if strings.HasPrefix(command, "make ") {
				writes = append(writes, command)
				continue
			}
			t.Run(command, func(t *testing.T) {
				t.Parallel()
				in(t, dir, inCopy+command)
			})
		}
	})
	for _, command := range writes {
		in(t, dir, inCopy+command)
	}
	// The documents and the tree are as they must be.
	in(t, dir, inCopy+
		"go test -short -run 'Readme$|Architecture|Claims|Kept|Matrix|Links|Tidy|Bounds|OfOneKind|Others' .")
	text := ""
	for _, file := range []string{"README.md", "docs/LOCKS.md", "docs/VERIFY.md", "docs/MATRIX.md", "docs/DRIVERS.md"} {
		text += read(t, filepath.Join(dir, file))
	}
	if !strings.Contains(text, "not measured yet") {
		t.Error("the documents do not say that the matrix knows nothing of the new lock")
	}
	for _, r := range all {
		name := "| `" + r.thing(patches[r.name]) + "` |"
		listed := r.name != "an output" && r.name != "a column" && r.name != "a series"
		if listed && !strings.Contains(text, name) { // a catalogue lacks it
			t.Errorf("%s: no document has a row %s", r.name, name)
		}
	}
}

var tested = regexp.MustCompile(`^go test( -short)? (\./\S+)( -run '?([^ ']+)'?)?$`)

// together returns each command once. It joins the commands that test the same package, because each of them would
// link the package again. The joined command runs the tests of all, and is short only if all are short.
func together(commands []string) (all []string) {
	type wanted struct{ short, run string }
	packages := map[string]*wanted{}
	for _, command := range commands {
		m := tested.FindStringSubmatch(command)
		if m == nil {
			if !slices.Contains(all, command) {
				all = append(all, command)
			}
			continue
		}
		short, name, run := m[1], m[2], cmp.Or(m[4], ".")
		if w := packages[name]; w == nil {
			packages[name] = &wanted{short, run}
		} else {
			w.short, w.run = min(w.short, short), w.run+"|"+run
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		w := packages[name]
		all = append(all, fmt.Sprintf("go test%s %s -run '%s'", w.short, name, w.run))
	}
	return all
}

// copyOfTheTree copies what git knows of, or would.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted and not committed
		}
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		to := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func in(t *testing.T, dir, command string) {
	t.Helper()
	if err := carryOut(dir, command); err != nil {
		t.Error(err)
	}
}

// carryOut runs a command. One that asks for tests of which there is none is wrong, too.
func carryOut(dir, command string) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		return fmt.Errorf("%s: %v\n%s", command, err, out)
	}
	return nil
}

func TestACommandThatFailsOrTestsNothingIsWrong(t *testing.T) {
	for command, works := range map[string]bool{
		"true": true, "exit 3": false, "go test -short -run ThereIsNoSuchTest ./internal/human": false,
	} {
		if err := carryOut(".", command); (err == nil) != works {
			t.Errorf("%s: %v", command, err)
		}
	}
}
