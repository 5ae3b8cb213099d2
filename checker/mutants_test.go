package checker

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is an error that is planted in a source file of this package. The given test must then fail: it compares the
// checker in this file with a slow, obvious oracle.
type mutant struct {
	test  string
	edits []string // pairs of a text that occurs once in one file of the package, and its replacement
}

var mutants = map[string]mutant{
	"activity: a worker that takes the lock again is a hand-off": {"TestActivityAgainstEveryMoment",
		[]string{"if contended && h.Worker != op.Worker {", "if contended {"}},
	"activity: a fault meets who called after it": {"TestActivityAgainstEveryMoment",
		[]string{"|| visit) && op.Call <= w.to {", "|| visit) {"}},

	"exclusion: belief begins with the call": {"TestSweepsAgainstOracle",
		[]string{"return h.Return, h.trusted()", "return h.Call, h.trusted()"}},
	"exclusion: a dead worker goes on believing": {"TestSweepsAgainstOracle",
		[]string{"return min(h.Until, h.Lost, h.Crashed)", "return min(h.Until, h.Lost)"}},
	"exclusion: a lease is counted from the answer": {"TestSweepsAgainstOracle",
		[]string{"plus(call, r.c.rules.Least(op.TTL))", "plus(op.Return, r.c.rules.Least(op.TTL))"}},
	"exclusion: a release without an answer is none": {"TestSweepsAgainstOracle",
		[]string{"	h.Release, h.releaseCall, h.releaseReturn, h.ending,", "	if h.Release = i; " +
			"op.Outcome == history.Unknown {\n\t\treturn\n\t}\n	h.Release, h.releaseCall, " +
			"h.releaseReturn, h.ending,"}},
	"exclusion: beliefs that touch overlap": {"TestSweepsAgainstOracle",
		[]string{"now.from >= r.to {", "now.from > r.to {"}},
	"exclusion: leases that touch overlap": {"TestSweepsAgainstOracle",
		[]string{"if x > t.hi {", "if x > t.hi || x == t.hi && x == now {"}},

	"exclusion: a writer does not wait for readers": {"TestReadersAgainstOracle",
		[]string{"if !shared && read > x {", "if shared && read > x {"}},
	"exclusion: readers exclude each other": {"TestReadersAgainstOracle",
		[]string{"if shared || certain ||", "if certain ||"}},
	"exclusion: permits come back late": {"TestPermitsAgainstOracle",
		[]string{"held[0].at <= t.at", "held[0].at < t.at"}},
	"exclusion: an exclusive hold has one permit": {"TestPermitsAgainstOracle",
		[]string{"	if h.Permits == 0 {\n		return c.Claims.Permits\n	}\n" +
			"	return int(h.Permits)", "	return max(int(h.Permits), 1)"}},

	"lost-updates: a store without an answer took effect": {"TestLostUpdatesAgainstEveryOrder",
		[]string{"(op.Outcome == history.OK || u.named[i])", "(op.Outcome != history.Failed || u.named[i])"}},
	"lost-updates: only a fork is a loss": {"TestLostUpdatesAgainstEveryOrder",
		[]string{"		cause, other := u.cause(left)\n", "		cause, other := u.cause(left)\n" +
			"		if other < 0 || u.Ops[other].Kind == history.Final {\n			continue\n		}\n"}},
	"lost-updates: a newer read is stale": {"TestLostUpdatesAgainstEveryOrder",
		[]string{
			"if seen >= 0 && u.place[seen] >= u.place[returned] {",
			"if seen < 0 || u.place[seen] <= u.place[returned] {",
		}},

	"fencing: an equal token is a greater one": {"TestFencingAgainstEveryPair",
		[]string{"if !doubts {", "if !doubts || true {"}},
	"fencing: a call counts as a return": {"TestFencingAgainstEveryPair",
		[]string{"n := r.before(op.Call - c.slack(r.process, op.Process)); n > 0", "n := len(r.ops); n > 0"}},

	"liveness: a release without an answer frees the lock": {"TestLivenessAgainstEverySecond",
		[]string{"h.Release >= 0 && (h.answer == history.OK ||", "h.Release >= 0 && (h.answer != history.Failed ||"}},
	"liveness: a crash is ignored": {"TestLivenessAgainstEverySecond",
		[]string{
			"return period{h.Return, h.trusted()}", "return period{h.Return, max(h.trusted(), min(h.Until, h.Lost))}",
		}},
	"liveness: somebody always waits": {"TestLivenessAgainstEverySecond",
		[]string{
			"pages[k] = joined(page, apart)", "pages[k] = []period{{apart, l.end}}", "for k, page := range pages {",
			"for k := range pages {",
		}},
	"liveness: who sleeps does not wait": {"TestLivenessAgainstEverySecond",
		[]string{"case sleeper >= 0:", "case sleeper < -1:"}},
	"liveness: silence is no standstill": {"TestLivenessAgainstEverySecond",
		[]string{"longest = max(longest, min(p.to, to)-max(p.from, from))", "_ = p"}},
	"liveness: a spared quorum explains a dead time": {"TestLivenessAgainstEverySecond",
		[]string{"		if e.StopsService() {\n", "		if e.Blocks {\n"}},
	"liveness: a command without an answer is over when nobody waits for it": {"TestLivenessAgainstEverySecond",
		[]string{"proof = max(proof, w.to)", "proof = max(proof, op.Return)"}},
	"liveness: a refused token that is found is nobody's": {"TestLivenessAgainstEverySecond",
		[]string{"} else if o.refused > 0 {\n		try :=", "} else if false {\n		try :="}},

	"reentrancy: what had no answer took effect": {"TestReentrancyAgainstEveryChoice",
		[]string{"d.ins++", "d.holds++"}},
	"reentrancy: a lease never ends": {"TestReentrancyAgainstEveryChoice",
		[]string{"n.over = op.Return > n.good", "n.over = false"}},

	"fairness: a waiter waits until its grant returns": {"TestFairnessAgainstEveryPairOfVisits",
		[]string{"take(i, e.asked)", "take(i, e.stop)", "asked = e.asked", "asked = e.stop"}},
	"fairness: a waiter has its place from its first call": {"TestFairnessAgainstEveryPairOfVisits",
		[]string{"cmp.Compare(since(&b.waits[i]), since(&b.waits[j]))", "int(b.waits[i].start - b.waits[j].start)",
			"before(since(&b.waits[byQueue[next]]), w.stood)", "before(b.waits[byQueue[next]].start, w.stood)"}},
	"fairness: a place outlasts a disturbance": {"TestWhoComesBackAgainstEveryPairOfVisits",
		[]string{
			"case refused && disturbed.meets(w.again, op.Return):",
			"case refused && disturbed.meets(w.again, op.Call):",
		}},
	"fairness: a refusal is heard of when it returns": {"TestFairnessAgainstEveryPairOfVisits",
		[]string{"if op.Return-w.asked > lease {", "if op.Call-w.asked > lease {"}},
}

// TestLiveMutantsAreCaught compiles the package once, with all mutants. Then it runs the test of each mutant, with only
// this mutant switched on.
func TestLiveMutantsAreCaught(t *testing.T) {
	names := slices.Sorted(maps.Keys(mutants))
	binary := filepath.Join(t.TempDir(), "checker.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-o", binary, "-overlay", schemata(t, names),
		".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	try := func(test string, mutant int) ([]byte, error) {
		cmd := exec.Command(binary, "-test.short", "-test.run", "^"+test+"$")
		cmd.Env = append(os.Environ(), fmt.Sprint("MUTANT=", mutant))
		return cmd.CombinedOutput()
	}
	tests := map[string]bool{}
	for i, name := range names {
		test := mutants[name].test
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := try(test, i+1)
			var failed *exec.ExitError
			if !errors.As(err, &failed) || !strings.Contains(string(out), "--- FAIL: "+test) {
				t.Errorf("%s did not notice it: %v\n%s", test, err, out)
			}
		})
		if tests[test] {
			continue
		}
		tests[test] = true
		t.Run("no mutant: "+test, func(t *testing.T) {
			t.Parallel()
			if out, err := try(test, 0); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// readSources returns the source of each file of the package that is no test.
func readSources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob("*.go")
	for _, file := range files {
		text, wrong := os.ReadFile(file)
		if err = errors.Join(err, wrong); !strings.HasSuffix(file, "_test.go") {
			all[file] = string(text)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// find returns the only file in which the mutant can be made, with its source before and after.
func (m mutant) find(t *testing.T, name string, all map[string]string) (file, source, mutated string) {
	t.Helper()
	found := 0
	for f, text := range all {
		changed, ok := text, true
		for i := 0; i < len(m.edits); i += 2 {
			ok = ok && strings.Count(changed, m.edits[i]) == 1
			changed = strings.Replace(changed, m.edits[i], m.edits[i+1], 1)
		}
		if ok {
			file, source, mutated, found = f, text, changed, found+1
		}
	}
	if found != 1 {
		t.Fatalf("%s: %d files have each text of %q once, want one file", name, found, m.edits)
	}
	return file, source, mutated
}

// schemata puts all mutants into one copy of the package, and returns the file that replaces the sources by this copy.
// A function that a mutant changes has one more body. It runs if MUTANT is the number of the mutant, from 1 (mutant
// schemata: Untch, Offutt and Harrold, ISSTA 1993).
func schemata(t *testing.T, names []string) string {
	t.Helper()
	dir := t.TempDir()
	all := readSources(t)
	// By file: sources has its source, and added has the text to insert at each place in it.
	sources, added := map[string]string{}, map[string]map[int]string{}
	for i, name := range names {
		file, source, mutated := mutants[name].find(t, name, all)
		if sources[file] == "" {
			sources[file], added[file] = source, map[int]string{}
		}
		was, is := functions(t, source), functions(t, mutated)
		changed := 0
		for k, f := range was {
			if k >= len(is) || f.head != is[k].head || f.text == is[k].text {
				continue
			}
			changed++
			added[file][f.body] += fmt.Sprintf("\nif activeMutant == %d { %s }\n", i+1, fmt.Sprintf(f.call, i+1))
			added[file][len(source)] += "\n" + strings.Replace(is[k].text, f.name+"(",
				fmt.Sprintf("%sMutant%d(", f.name, i+1), 1) + "\n"
		}
		if changed == 0 {
			t.Fatalf("%s: no body of a function in %s is another one", name, file)
		}
	}
	sources["mutant.go"] = "package checker\n\nimport (\n\"os\"\n\"strconv\"\n)\n\nvar activeMutant, " +
		"_ = strconv.Atoi(os.Getenv(\"MUTANT\"))\n"
	replace := map[string]string{}
	for file, text := range sources {
		for _, at := range slices.Backward(slices.Sorted(maps.Keys(added[file]))) {
			text = text[:at] + added[file][at] + text[at:]
		}
		source, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		replace[source] = filepath.Join(dir, file)
		if err := os.WriteFile(replace[source], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	list := filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, os.WriteFile(list, overlay, 0o600)); err != nil {
		t.Fatal(err)
	}
	return list
}

// function is a function of a source file. It has the name, the text with and without the body, and the place where
// the body begins. The format call, for fmt.Sprintf, calls the function's mutant with the same arguments.
type function struct {
	name, text, head, call string
	body                   int
}

func functions(t *testing.T, source string) (list []function) {
	t.Helper()
	set := gotoken.NewFileSet()
	file, err := parser.ParseFile(set, "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p gotoken.Pos) int { return set.Position(p).Offset }
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		call := f.Name.Name + "Mutant%d("
		if f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
			call = f.Recv.List[0].Names[0].Name + "." + call
		}
		for _, p := range f.Type.Params.List {
			for _, name := range p.Names {
				call += name.Name + ", "
			}
		}
		if call = strings.TrimSuffix(call, ", ") + ")"; f.Type.Results != nil {
			call = "return " + call
		} else {
			call += "; return"
		}
		begin, body, end := at(f.Pos()), at(f.Body.Lbrace)+1, at(f.End())
		list = append(list, function{f.Name.Name, source[begin:end], source[begin:body], call, body})
	}
	return list
}
