package hammerlock_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// commandModules is how many modules the commands are linked with.
const commandModules = 53

// TestBeyondStaysOutside: the clients of servers that are not Redis are dependencies of the module beyond, and none of this one.
func TestBeyondStaysOutside(t *testing.T) {
	required := func(path string) (list []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse(path, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Require {
			list = append(list, r.Mod.Path)
		}
		return list
	}
	own, theirs := required("go.mod"), required("beyond/go.mod")
	for _, client := range []string{"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"} {
		if slices.Contains(own, client) || !slices.Contains(theirs, client) {
			t.Errorf("%s is to be required by beyond alone", client)
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	used := strings.Fields(string(out))
	slices.Sort(used)
	if used = slices.Compact(used); len(used) > commandModules {
		t.Errorf("the commands are linked with %d modules, want at most %d: %v", len(used), commandModules, used)
	}
}
