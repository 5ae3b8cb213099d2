package checker

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is an error that is planted in a source file of this package. The test that compares its checker with a slow,
// obvious oracle must fail then.
type mutant struct {
	file, test string
	edits      []string // what is replaced, once in the file, and by what
}

var mutants = map[string]mutant{
	"activity: a worker that takes the lock again is a hand-off": {"activity.go", "TestActivityAgainstEveryMoment",
		[]string{"if contended && h.Worker != op.Worker {", "if contended {"}},
	"activity: a fault meets who called after it": {"activity.go", "TestActivityAgainstEveryMoment",
		[]string{"history.Store) && op.Call <= w.to {", "history.Store) {"}},

	"exclusion: belief begins with the call": {"interval.go", "TestSweepsAgainstOracle",
		[]string{"return h.Return, h.trusted()", "return h.Call, h.trusted()"}},
	"exclusion: a dead worker goes on believing": {"interval.go", "TestSweepsAgainstOracle",
		[]string{"return min(h.Until, h.Lost, h.Crashed)", "return min(h.Until, h.Lost)"}},
	"exclusion: a lease is counted from the answer": {"interval.go", "TestSweepsAgainstOracle",
		[]string{"plus(op.Call, r.least(op.TTL))", "plus(op.Return, r.least(op.TTL))"}},
	"exclusion: a release without an answer is none": {"follow.go", "TestSweepsAgainstOracle",
		[]string{"	if h.Release >= 0 {\n", "	if h.Release >= 0 && c.Ops[h.Release].Outcome != history.Unknown {\n"}},
	"exclusion: beliefs that touch overlap": {"sweep.go", "TestSweepsAgainstOracle",
		[]string{"now.from >= r.to {", "now.from > r.to {"}},
	"exclusion: leases that touch overlap": {"sweep.go", "TestSweepsAgainstOracle",
		[]string{"if x > t.hi {", "if x > t.hi || x == t.hi && x == now {"}},

	"exclusion: a writer does not wait for readers": {"sweep.go", "TestReadersAgainstOracle",
		[]string{"if !shared && read > x {", "if shared && read > x {"}},
	"exclusion: readers exclude each other": {"sweep.go", "TestReadersAgainstOracle",
		[]string{"if shared || certain ||", "if certain ||"}},
	"exclusion: permits come back late": {"modes.go", "TestPermitsAgainstOracle",
		[]string{"held[0].at <= t.at", "held[0].at < t.at"}},
	"exclusion: an exclusive hold has one permit": {"modes.go", "TestPermitsAgainstOracle",
		[]string{"	if h.Permits == 0 {\n		return c.Claims.Permits\n	}\n	return int(h.Permits)", "	return max(int(h.Permits), 1)"}},

	"lost-updates: a store without an answer took effect": {"lost_updates.go", "TestLostUpdatesAgainstEveryOrder",
		[]string{"(op.Outcome == history.OK || u.named[i])", "(op.Outcome != history.Failed || u.named[i])"}},
	"lost-updates: only a fork is a loss": {"lost_updates.go", "TestLostUpdatesAgainstEveryOrder",
		[]string{"		cause, other := u.cause(left)\n", "		cause, other := u.cause(left)\n		if other < 0 {\n			continue\n		}\n"}},
	"lost-updates: a newer read is stale": {"visits.go", "TestLostUpdatesAgainstEveryOrder",
		[]string{"if seen >= 0 && u.place[seen] >= u.place[returned] {", "if seen < 0 || u.place[seen] <= u.place[returned] {"}},

	"fencing: an equal token is a greater one": {"fencing.go", "TestFencingAgainstEveryPair",
		[]string{"if !doubts {", "if !doubts || true {"}},
	"fencing: a call counts as a return": {"order.go", "TestFencingAgainstEveryPair",
		[]string{"at := r.before(t); at > 0", "at := len(r.returns); at > 0"}},

	"liveness: a release without an answer frees the lock": {"liveness.go", "TestLivenessAgainstEverySecond",
		[]string{"			w.to = op.Return\n		}\n", "			w.to = op.Return\n		}\n	default:\n		w.to = min(w.to, op.Call)\n"}},
	"liveness: a crash is ignored": {"liveness.go", "TestLivenessAgainstEverySecond",
		[]string{"return period{h.Return, h.trusted()}", "return period{h.Return, max(h.trusted(), min(h.Until, h.Lost))}"}},
	"liveness: somebody always waits": {"liveness.go", "TestLivenessAgainstEverySecond",
		[]string{"	l.waits = int64(len(list))\n", "	l.waits, list = int64(len(list)), nil\n	for k := range l.keys {\n" +
			"		list = append(list, stretch{period{0, l.end()}, int32(k)})\n	}\n"}},
	"liveness: who sleeps does not wait": {"stuck.go", "TestLivenessAgainstEverySecond",
		[]string{"if sleeper < 0 {", "if sleeper >= -1 {"}},
	"liveness: silence is no standstill": {"stuck.go", "TestLivenessAgainstEverySecond",
		[]string{"least[i] += longest", "_ = longest"}},
	"liveness: a spared quorum explains a dead time": {"spans.go", "TestLivenessAgainstEverySecond",
		[]string{"		if e.StopsService() {\n", "		if e.Blocks {\n"}},
	"liveness: a command without an answer is over when nobody waits for it": {"liveness.go", "TestLivenessAgainstEverySecond",
		[]string{"proof = max(proof, w.to)", "proof = max(proof, op.Return)"}},
	"liveness: a refused token that is found is nobody's": {"leaks.go", "TestLivenessAgainstEverySecond",
		[]string{"} else if o.refused > 0 {\n		try :=", "} else if false {\n		try :="}},

	"reentrancy: what had no answer took effect": {"reentrancy.go", "TestReentrancyAgainstEveryChoice",
		[]string{"return depth{d.holds, d.ins + 1, d.outs}, true", "return depth{d.holds + 1, d.ins, d.outs}, true"}},
	"reentrancy: a lease never ends": {"reentrancy.go", "TestReentrancyAgainstEveryChoice",
		[]string{"n.over = op.Return > plus(n.proof, r.least(n.ttl))", "n.over = false"}},

	"fairness: a waiter waits until its grant returns": {"fairness.go", "TestFairnessAgainstEveryPairOfVisits",
		[]string{"b.waits[i].asked > b.waits[*l-1].asked", "b.waits[i].stop > b.waits[*l-1].stop", "before(w.stop, earlier.asked)", "before(w.stop, earlier.stop)"}},
	"fairness: a waiter has its place from its first call": {"fairness.go", "TestFairnessAgainstEveryPairOfVisits",
		[]string{"cmp.Compare(since(&b.waits[i]), since(&b.waits[j]))", "int(b.waits[i].start - b.waits[j].start)",
			"before(since(&b.waits[byQueue[next]]), w.stood)", "before(b.waits[byQueue[next]].start, w.stood)"}},
	"fairness: a place outlasts a disturbance": {"order.go", "TestWhoComesBackAgainstEveryPairOfVisits",
		[]string{"case refused && disturbed.meets(w.again, op.Return):", "case refused && disturbed.meets(w.again, op.Call):"}},
	"fairness: a refusal is heard of when it returns": {"order.go", "TestFairnessAgainstEveryPairOfVisits",
		[]string{"if op.Return-w.asked > lease {", "if op.Call-w.asked > lease {"}},
}

// TestLiveMutantsAreCaught compiles the package and its tests once for each mutant.
func TestLiveMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package once for each of its mutants")
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The draw of -short takes less time than inlining, or what a debugger needs.
			cmd := exec.Command("go", "test", "-short", "-vet=off", "-gcflags=-l -dwarf=false", "-ldflags=-s -w", "-overlay", m.overlay(t), "-run", "^"+m.test+"$", ".")
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || !strings.Contains(string(out), "--- FAIL: "+m.test) {
				t.Errorf("%s did not notice it: %v\n%s", m.test, err, out)
			}
		})
	}
}

// overlay writes the mutant and returns the file that puts it in the place of the source.
func (m *mutant) overlay(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	mutated := string(text)
	for i := 0; i < len(m.edits); i += 2 {
		if n := strings.Count(mutated, m.edits[i]); n != 1 {
			t.Fatalf("%s has %q %d times, want once", m.file, m.edits[i], n)
		}
		mutated = strings.Replace(mutated, m.edits[i], m.edits[i+1], 1)
	}
	dir := t.TempDir()
	put := filepath.Join(dir, m.file)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: put}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := errors.Join(os.WriteFile(put, []byte(mutated), 0o600), os.WriteFile(list, overlay, 0o600)); err != nil {
		t.Fatal(err)
	}
	return list
}
