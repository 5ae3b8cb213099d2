package hammerlock_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipe is a row of the table in CONTRIBUTING.md: the files that it names, and what is to be run then.
type recipe struct {
	name, patch     string // the patch is a file
	files, commands []string
}

// thing is the name that the patch gives to what it adds.
func (r *recipe) thing(t *testing.T) string {
	t.Helper()
	before, after, _ := strings.Cut(r.files[0], "*")
	m := regexp.MustCompile("b/" + regexp.QuoteMeta(before) + `(\w+)` + regexp.QuoteMeta(after) + "\nnew file").FindStringSubmatch(read(t, r.patch))
	if m == nil {
		t.Fatalf("%s: the patch adds no %s", r.name, r.files[0])
	}
	return m[1]
}

var quoted = regexp.MustCompile("`([^`]+)`")

func recipes(t *testing.T) (all []recipe) {
	t.Helper()
	for _, row := range regexp.MustCompile(`(?m)^\| (an? \w+) \|(.*)\|(.*)\|$`).FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		patch, err := filepath.Abs(filepath.Join("testdata", "contributing", strings.ReplaceAll(row[1], " ", "-")+".patch"))
		if err != nil {
			t.Fatal(err)
		}
		r := recipe{name: row[1], patch: patch}
		for _, m := range quoted.FindAllStringSubmatch(row[2], -1) {
			r.files = append(r.files, strings.ReplaceAll(m[1], "NAME", "*"))
		}
		for _, m := range quoted.FindAllStringSubmatch(row[3], -1) {
			r.commands = append(r.commands, strings.ReplaceAll(m[1], "NAME", r.thing(t)))
		}
		all = append(all, r)
	}
	return all
}

// TestRecipesNameTheirFiles: a patch for each recipe of CONTRIBUTING.md changes the files that the recipe names and no other.
func TestRecipesNameTheirFiles(t *testing.T) {
	patches, err := filepath.Glob("testdata/contributing/*.patch")
	if all := recipes(t); err != nil || len(all) != len(patches) || len(all) == 0 {
		t.Errorf("%d recipes, %d patches, %v", len(all), len(patches), err)
	}
	for _, r := range recipes(t) {
		changed := regexp.MustCompile(`(?m)^diff --git a/(\S+)`).FindAllStringSubmatch(read(t, r.patch), -1)
		used := map[string]bool{}
		for _, m := range changed {
			known := false
			for _, pattern := range r.files {
				if ok, _ := path.Match(pattern, m[1]); ok {
					known, used[pattern] = true, true
				}
			}
			if !known {
				t.Errorf("%s: the recipe does not name %s", r.name, m[1])
			}
		}
		for _, pattern := range r.files {
			if strings.Contains(pattern, ".go") && !used[pattern] && !strings.Contains(pattern, "broken_") {
				t.Errorf("%s: the recipe names %s, its patch does not change it", r.name, pattern)
			}
		}
		if len(r.commands) == 0 {
			t.Errorf("%s: nothing is to be run", r.name)
		}
	}
}

// TestRecipesWork carries out all recipes in a copy of the tree, and runs what each says is to be run.
func TestRecipesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a copy of the tree")
	}
	dir := copyOfTheTree(t)
	all := recipes(t)
	for _, r := range all {
		in(t, dir, "git apply '"+r.patch+"'")
	}
	in(t, dir, "go vet ./...")
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			for _, command := range r.commands {
				in(t, dir, command)
			}
		})
	}
	in(t, dir, "go test -short .") // the documents and the tree are as they must be
	if text, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || !strings.Contains(string(text), "not measured yet") {
		t.Errorf("README.md does not say that the matrix knows nothing of the new lock: %v", err)
	}
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
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}
