package hammerlock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/cli"
	"hammerlock/internal/driver"
	"hammerlock/internal/glossary"
	"hammerlock/internal/settings"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/tools/kept"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// update writes the generated parts of the documents again instead of comparing them: make readme.
var update = flag.Bool("update", false, "write the generated parts of the documents again")

// maxArchitectureRows keeps the map smaller than the land; its table of imports has a row for each package.
const maxArchitectureRows = 89

// maxReadmeRows limits what a newcomer has to read. Rows of generated tables do not count, so that a new topology
// does not require a shorter text.
const maxReadmeRows = 160

// TestReadme compares the generated parts of the README and of the documents that go on from it with the catalogues.
func TestReadme(t *testing.T) {
	documents := map[string]map[string]string{
		"README.md":      {"topologies": topologyTable()},
		"docs/BENCH.md":  {},
		"docs/WORDS.md":  {"words": wordTable(), "names": nameTable(t)},
		"docs/LOCKS.md":  {"locks": lockTable(), "counters": counterTable()},
		"docs/VERIFY.md": {"scenarios": scenarioTable(), "faults": faultTable(), "checks": checkTable()},
	}
	known := flagsOf(t, cli.Bench)
	maps.Copy(known, flagsOf(t, cli.Verify))
	maps.Copy(known, flagsOf(t, cli.Verify, "http"))
	maps.Copy(known, flagsOf(t, cli.Verify, "wire"))
	maps.Copy(known, flagsOf(t, cli.Bench, "plan"))
	maps.Copy(known, flagsOf(t, cli.Bench, "search"))
	maps.Copy(known, flagsOf(t, cli.Bench, "ab"))
	maps.Copy(known, flagsOf(t, cli.Bench, "failover"))
	maps.Copy(known, flagsOf(t, cli.Verify, "soak"))
	for file, parts := range documents {
		text := generated(t, file, parts)
		for _, name := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(text, -1) {
			if !known[name] {
				t.Errorf("%s speaks of %s, neither bench --help nor verify --help does", file, name)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^    bin/bench (-[^#|\n]*)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "plan.yaml") { // the command before writes it: make readme-check
				mustBeValid(t, cli.Bench, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^    bin/verify (-[^#|\n]*)`).FindAllStringSubmatch(text, -1) {
			mustBeValid(t, cli.Verify, m[1])
		}
		written := regexp.MustCompile(`(?s)<!-- generated: .*?<!-- end -->\n`).ReplaceAllString(text, "")
		if rows := strings.Count(written, "\n"); file == "README.md" && rows > maxReadmeRows {
			t.Errorf("README.md has %d lines beside its generated table, at most %d", rows, maxReadmeRows)
		}
		for row := range strings.Lines(text) { // rows of a table and pictures cannot be wrapped
			if file == "README.md" && len([]rune(strings.TrimSpace(row))) > 100 && !strings.ContainsAny(row[:1], "|!") {
				t.Errorf("README.md has a line of more than 100 columns: %s", row)
			}
		}
	}
}

// TestKept compares the documents that were measured with what is kept of the measurements: no test measures again.
func TestKept(t *testing.T) {
	tables, err := kept.Tables()
	if err != nil {
		t.Fatal(err)
	}
	for file, parts := range tables {
		generated(t, file, parts)
	}
}

// TestClaims compares the documents with the claims that a lock or a driver can make. It also checks that the
// checkers and the scenario of each claim exist.
func TestClaims(t *testing.T) {
	made := history.Claims{Permits: 1}
	for _, c := range history.AllClaims {
		if c.Flag != nil {
			*c.Flag(&made) = true
		}
	}
	header, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	table := "| claim | the lock promises that |\n|---|---|\n"
	inFile, ofDrivers := table, table
	for _, c := range history.AllClaims {
		if strings.Contains(string(header), `"`+c.Name+`":`) {
			inFile += fmt.Sprintf("| `%s` | %s |\n", c.Name, c.Says)
		} else if c.Flag != nil {
			t.Errorf("%s is no field of a header: %s", c.Name, header)
		}
		for _, name := range c.Judges {
			if !slices.ContainsFunc(checker.All, func(k checker.Checker) bool { return k.Name == name }) {
				t.Errorf("%s: there is no checker %s", c.Name, name)
			}
		}
		if _, known := scenarios.Find(c.Scenario); !known && c.Scenario != "" {
			t.Errorf("%s: there is no scenario %s", c.Name, c.Scenario)
		}
	}
	for _, c := range driver.Claims() {
		ofDrivers += fmt.Sprintf("| `%s` | %s |\n", c[0], c[1])
	}
	generated(t, "history/FORMAT.md", map[string]string{"claims": inFile})
	generated(t, "docs/DRIVERS.md", map[string]string{"claims": ofDrivers})
}

// TestMatrix: docs/MATRIX.md has a row for each expectation of the catalogue. A result that was measured for another
// expectation must not be in it.
func TestMatrix(t *testing.T) {
	_, after, _ := strings.Cut(results.PutExpected(read(t, "docs/MATRIX.md"), nil, cli.Documented(known.Locks), ""),
		"<!-- generated: expected -->\n")
	part, _, _ := strings.Cut(after, "<!-- end -->")
	generated(t, "docs/MATRIX.md", map[string]string{"expected": part})
}

// mostPictures is how many bytes all pictures have together at most.
const mostPictures = 1_500_000

// TestPictures holds the pictures against the documents that show them.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("docs/pictures/*")
	if err != nil {
		t.Fatal(err)
	}
	text, total := "", int64(0)
	for _, file := range documents(t) {
		text += read(t, file)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		if !strings.Contains(text, "pictures/"+filepath.Base(file)) {
			t.Errorf("no document shows %s", file)
		}
	}
	if len(files) == 0 || total > mostPictures {
		t.Errorf("%d pictures have %d bytes, at most %d", len(files), total, mostPictures)
	}
}

// TestLinks follows every link of every document to a file and a heading, and every target of make that one names.
func TestLinks(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	headings := func(text string) (all []string) {
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			plain := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(m[1]), "")
			all = append(all, strings.ReplaceAll(plain, " ", "-"))
		}
		return all
	}
	for _, file := range documents(t) {
		text := read(t, file)
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			there := file
			if target != "" {
				there = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(there); err != nil {
				t.Errorf("%s: a link to %s: %v", file, m[1], err)
			} else if heading != "" && !slices.Contains(headings(read(t, there)), heading) {
				t.Errorf("%s: a link to %s, which has no such heading", file, m[1])
			}
		}
		for _, m := range regexp.MustCompile("(?m)(?:^    |`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if !bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
				t.Errorf("%s says make %s, there is no such target", file, m[1])
			}
		}
	}
	for _, file := range documents(t) { // the record has an index of its own
		folder := "docs/"
		if strings.HasPrefix(file, "docs/record/") && file != "docs/record/README.md" {
			folder = "docs/record/"
		}
		name, ok := strings.CutPrefix(file, folder)
		if ok && name != "README.md" && !strings.Contains(read(t, folder+"README.md"), "]("+name+")") {
			t.Errorf("%sREADME.md does not name %s", folder, name)
		}
	}
}

// maxDoorRows is what somebody reads who wants one thing.
const maxDoorRows = 120

// door is the beginning of a page: a command, perhaps a sentence, and its output.
var door = regexp.MustCompile("^# .*\\n\\n    bin/.*\\n\\n(.*\\n\\n)?```\\n")

// TestDoors: docs/README.md has a page for each reader, which is short and begins with a command and its output.
func TestDoors(t *testing.T) {
	first, _, _ := strings.Cut(read(t, "docs/README.md"), "Behind them")
	doors := regexp.MustCompile(`\]\(([A-Za-z]+\.md)\) \|\n`).FindAllStringSubmatch(first, -1)
	if len(doors) != 5 {
		t.Errorf("docs/README.md has %d doors: %q", len(doors), doors)
	}
	for _, d := range doors {
		text := read(t, "docs/"+d[1])
		if rows := strings.Count(text, "\n"); rows > maxDoorRows {
			t.Errorf("%s has %d lines, at most %d", d[1], rows, maxDoorRows)
		}
		if !door.MatchString(text) {
			t.Errorf("%s does not begin with a command and its output", d[1])
		}
	}
}

// documents lists the Markdown files that git knows of.
func documents(t *testing.T) []string {
	t.Helper()
	list, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(list))
}

func TestArchitecture(t *testing.T) {
	table := importTable()
	text := generated(t, "ARCHITECTURE.md", map[string]string{"imports": table})
	if rows := strings.Count(text, "\n") - strings.Count(table, "\n"); rows > maxArchitectureRows {
		t.Errorf("ARCHITECTURE.md has %d lines beside the table, at most %d", rows, maxArchitectureRows)
	}
	for _, m := range regexp.MustCompile("`([a-z/]+/[a-z_]+\\.go)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("ARCHITECTURE.md points to %s: %v", m[1], err)
		}
	}
}

// generated compares parts of a document with what they should be, and returns the document.
func generated(t *testing.T, file string, parts map[string]string) string {
	t.Helper()
	old := read(t, file)
	text, err := kept.Put(old, parts)
	switch {
	case err != nil:
		t.Errorf("%s: %v", file, err)
	case text == old:
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
		rows += fmt.Sprintf("| `%s` | %s | `%s` |\n", s.Name, s.Doc, locks.Auto(catalogue.All, s).Name)
	}
	return rows
}

func lockTable() string {
	rows := "| lock | what it is | safe if | source |\n|---|---|---|---|\n"
	for _, s := range known.Locks {
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
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", s.Name, s.Doc, strings.Join(s.Planned(faults.OfWorkers), ", "))
	}
	return rows
}

func wordTable() (text string) {
	for _, g := range glossary.Groups {
		text += fmt.Sprintf("## %s\n\n", g)
		for _, w := range glossary.All {
			if w.Group == g {
				text += fmt.Sprintf("* **%s** %s\n", w.Name, w.Means)
			}
		}
		text += "\n"
	}
	return strings.TrimSuffix(text, "\n")
}

// nameTable says what has one name on the command line and another in JSON. Both exist.
func nameTable(t *testing.T) string {
	rows := "| on the command line, in plans and texts | before (still works) | in JSON |\n|---|---|---|\n"
	flags := flagsOf(t, cli.Bench)
	config, err := json.Marshal(results.Config{})
	for _, n := range settings.Names {
		if err != nil || !flags["--"+n.Flag] || flags["--"+n.Before] ||
			!strings.Contains(string(config), `"`+n.JSON+`":`) {
			t.Errorf("%+v: no such flag, or no such field in %s, %v", n, config, err)
		}
		rows += fmt.Sprintf("| `--%s` | `%s` | `%s` |\n", n.Flag, n.Before, n.JSON)
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
		if strings.HasPrefix(p, "beyond") {
			continue // another module
		}
		may := strings.Join(mayImport[p], ", ")
		if may == "" {
			may = "-"
		}
		rows += fmt.Sprintf("| %d | `%s` | %s |\n", depth(p), p, may)
	}
	return rows
}

// flagsOf asks a command which flags it has.
func flagsOf(t *testing.T, command func(context.Context, cli.Env) int, sub ...string) map[string]bool {
	t.Helper()
	var help bytes.Buffer
	if code := command(t.Context(), cli.Env{Args: slices.Concat([]string{"help"}, sub, []string{"all"}), Stdout: &help,
		Stderr: &help}); code != cli.Passed {
		t.Fatalf("help all: exit code %d\n%s", code, help.String())
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
	words, err := driver.Split(line)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	args := append(words, "--redis-server", "/nowhere", "--out", t.TempDir())
	code := command(t.Context(), cli.Env{Args: args, Stdout: &out, Stderr: &out})
	if code != cli.Broken && (code != cli.Passed || !strings.Contains(line, "--list")) {
		t.Errorf("%q: exit code %d\n%s", line, code, out.String())
	}
}
