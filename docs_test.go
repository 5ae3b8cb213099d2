package hammerlock_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/cli"
	"hammerlock/locks"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// update writes the generated parts of the documents again instead of comparing them: make readme.
var update = flag.Bool("update", false, "write the generated parts of README.md and ARCHITECTURE.md")

// maxArchitectureRows keeps the map smaller than the land.
const maxArchitectureRows = 150

func TestReadme(t *testing.T) {
	text := generated(t, "README.md", map[string]string{
		"topologies": topologyTable(),
		"locks":      lockTable(),
		"counters":   counterTable(),
		"faults":     faultTable(),
		"scenarios":  scenarioTable(),
		"checks":     checkTable(),
		"waiting":    waitingTable(t),
		"matrix":     readMatrix(t).short(),
	})
	known := flagsOf(t, cli.Bench)
	maps.Copy(known, flagsOf(t, cli.Verify))
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(text, -1) {
		if !known[name] {
			t.Errorf("README.md speaks of %s, neither bench --help nor verify --help does", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^    bin/bench ([^#|\n]*)`).FindAllStringSubmatch(text, -1) {
		mustBeValid(t, cli.Bench, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^    bin/verify (-[^#|\n]*)`).FindAllStringSubmatch(text, -1) {
		mustBeValid(t, cli.Verify, m[1])
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)").FindAllStringSubmatch(text, -1) {
		if !bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
			t.Errorf("README.md says make %s, there is no such target", m[1])
		}
	}
}

func TestArchitecture(t *testing.T) {
	text := generated(t, "ARCHITECTURE.md", map[string]string{"imports": importTable()})
	if rows := strings.Count(text, "\n"); rows > maxArchitectureRows {
		t.Errorf("ARCHITECTURE.md has %d lines, at most %d", rows, maxArchitectureRows)
	}
	for _, m := range regexp.MustCompile("`([a-z/]+/[a-z_]+\\.go)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("ARCHITECTURE.md points to %s: %v", m[1], err)
		}
	}
}

// generated compares the parts of a document between <!-- generated: NAME --> and <!-- end --> with what they
// should be, and returns the document.
func generated(t *testing.T, file string, parts map[string]string) string {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	marked := regexp.MustCompile(`(?s)<!-- generated: (\w+) -->\n.*?<!-- end -->`)
	text := marked.ReplaceAllStringFunc(string(old), func(part string) string {
		name := marked.FindStringSubmatch(part)[1]
		seen[name] = true
		return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- end -->", name, parts[name])
	})
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if !seen[name] {
			t.Errorf("%s has no part %q", file, name)
		}
	}
	switch {
	case text == string(old):
	case *update:
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date: make readme", file)
	}
	return text
}

func topologyTable() string {
	rows := "| topology | what it is | `--lock auto` |\n|---|---|---|\n"
	for _, s := range topologies.All {
		rows += fmt.Sprintf("| `%s` | %s | `%s` |\n", s.Name, s.Doc, locks.Auto(s.Sites).Name)
	}
	return rows
}

func lockTable() string {
	rows := "| lock | what it is | safe if | source |\n|---|---|---|---|\n"
	for _, s := range locks.All {
		safe := s.Assumes
		if s.Broken != "" {
			safe = "**never:** " + s.Broken
		}
		rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", s.Name, s.Doc, safe, s.Source)
	}
	return rows
}

func faultTable() string {
	rows := "| fault | what it does |\n|---|---|\n"
	for _, f := range faults.All {
		rows += fmt.Sprintf("| `%s` | %s |\n", f.Name, f.Doc)
	}
	return rows
}

func scenarioTable() string {
	rows := "| scenario | what it strains | faults |\n|---|---|---|\n"
	for _, s := range scenarios.All {
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", s.Name, s.Doc, strings.Join(s.Planned(), ", "))
	}
	return rows
}

func checkTable() string {
	rows := "| check | what it finds |\n|---|---|\n"
	for _, c := range checker.All {
		rows += fmt.Sprintf("| `%s` | %s |\n", c.Name, c.Doc)
	}
	return rows
}

func counterTable() string {
	rows := "| counter | where the page views are |\n|---|---|\n"
	for _, s := range workload.AllCounters {
		doc := s.Doc
		if s.Broken != "" {
			doc += "; **broken:** " + s.Broken
		}
		rows += fmt.Sprintf("| `%s` | %s |\n", s.Name, doc)
	}
	return rows
}

// importTable writes the table that TestTidy enforces, every room above the rooms that it may import.
func importTable() string {
	level := map[string]int{}
	var depth func(pkg string) int
	depth = func(pkg string) int {
		if _, done := level[pkg]; !done {
			for _, below := range mayImport[pkg] {
				level[pkg] = max(level[pkg], depth(below)+1)
			}
		}
		return level[pkg]
	}
	packages := slices.SortedFunc(maps.Keys(mayImport), func(a, b string) int {
		if d := depth(a) - depth(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	rows := "| level | package | may import (ours) |\n|---|---|---|\n"
	for _, p := range packages {
		may := strings.Join(mayImport[p], ", ")
		if may == "" {
			may = "-"
		}
		rows += fmt.Sprintf("| %d | `%s` | %s |\n", depth(p), p, may)
	}
	return rows
}

// flagsOf asks a command which flags it has.
func flagsOf(t *testing.T, command func(context.Context, cli.Env) int) map[string]bool {
	t.Helper()
	var help bytes.Buffer
	if code := command(t.Context(), cli.Env{Args: []string{"--help"}, Stdout: &help, Stderr: &help}); code != cli.Passed {
		t.Fatalf("--help: exit code %d\n%s", code, help.String())
	}
	flags := map[string]bool{}
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(help.String(), -1) {
		flags[name] = true
	}
	return flags
}

// mustBeValid lets a command check its arguments on a machine without a server, so that nothing is started.
func mustBeValid(t *testing.T, command func(context.Context, cli.Env) int, line string) {
	t.Helper()
	var out bytes.Buffer
	args := append(strings.Fields(line), "--redis-server", "/nowhere", "--out", t.TempDir())
	code := command(t.Context(), cli.Env{Args: args, Stdout: &out, Stderr: &out})
	if code != cli.Broken && (code != cli.Passed || !strings.Contains(line, "--list")) {
		t.Errorf("%q: exit code %d\n%s", line, code, out.String())
	}
}
