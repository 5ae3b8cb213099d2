package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"hammerlock/certify"
	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/results"
)

// job has the settings of a run. The number n is that of histories of right locks, and also that of histories of
// wrong ones.
type job struct {
	n           int
	seed        uint64
	facts       bool
	kind, wrong string
	dir         string // where to save histories that are judged wrongly; empty = nowhere
	ask         func(*history.History) answered
}

// answered is the judge's answer about a history.
type answered struct {
	fails []string // checker and cause
	wrong string   // the judge panicked or refused the history

	proved []certify.Verdict // if certificates are requested
}

// long makes the function judge work twice. The second time it keeps all arrays in files, as for long histories.
var long bool

// certifies makes the function judge certify the verdicts too.
var certifies bool

// judge calls the judge, and recovers from a panic.
func judge(h *history.History) (a answered) {
	defer func() {
		if r := recover(); r != nil {
			a.wrong = fmt.Sprintf("panic: %v", r)
		}
	}()
	verdicts, err := checker.JudgeHistory(h)
	if err != nil {
		a.wrong = err.Error()
	}
	if long {
		in := *h
		in.Space.Large = 1
		if again, _ := checker.JudgeHistory(&in); !reflect.DeepEqual(verdicts, again) {
			a.wrong = fmt.Sprintf("another verdict as a long history: %+v, not %+v", again, verdicts)
		}
	}
	for _, v := range verdicts {
		if v.Status == checker.Fail {
			a.fails = append(a.fails, v.Checker+":"+v.Cause)
		}
	}
	if certifies {
		a.certify(h)
	}
	return a
}

// certify records which verdicts are certified. If a certificate is refused, the judge has failed: then a.wrong
// says why.
func (a *answered) certify(h *history.History) {
	var certificate bytes.Buffer
	_, err := results.JudgeCertified(h, &certificate)
	if err == nil {
		text := bytes.Clone(certificate.Bytes())
		a.proved, err = results.Certify(h, &certificate)
		if n := 0; err != nil {
			fmt.Sscanf(err.Error(), "line %d", &n)
			err = fmt.Errorf("%w: %s", err, bytes.Split(text, []byte("\n"))[max(n-1, 0)])
		}
	}
	if err != nil {
		a.wrong = "refused certificate: " + err.Error()
	}
}

// certificates counts the certified and the other verdicts, by status, checker and cause.
type certificates map[string]*struct{ certified, not int }

func (c certificates) add(all []certify.Verdict) {
	for _, v := range all {
		if v.Status != "pass" && v.Status != "fail" {
			continue
		}
		name := strings.TrimSpace(v.Status + " " + v.Checker + " " + v.Cause)
		if c[name] == nil {
			c[name] = &struct{ certified, not int }{}
		}
		if v.Proof != "" {
			c[name].certified++
		} else {
			c[name].not++
		}
	}
}

func (c certificates) write(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(out, "%-44s %7d certified %7d not\n", name, c[name].certified, c[name].not)
	}
}

// result is the outcome for one history.
type result struct {
	pair   pair
	seed   uint64
	proofs []string
	answered
	ask    func(*history.History) answered
	broken bool
	hidden map[string]bool // names of the added facts that hid the failure
	h      *history.History
}

// accused reports whether the judge fails a right lock. If a server loses grants or fences, the failure is not
// the lock's.
func (r *result) accused() bool {
	return r.pair.wrong == none && slices.ContainsFunc(r.fails, func(f string) bool {
		return !r.broken || f != "exclusion:service-loss" && !strings.HasPrefix(f, "linearizable:") &&
			!strings.HasPrefix(f, "lost-updates:") && !strings.HasPrefix(f, "fencing:")
	})
}

// missed reports whether a proven violation is not found.
func (r *result) missed() bool { return r.pair.wrong != none && len(r.proofs) > 0 && len(r.fails) == 0 }

// bad says in a few words what is wrong with the judge's answer; empty if the answer is right.
func (r *result) bad() string {
	switch {
	case r.wrong != "":
		return "breaks down"
	case r.pair.wrong == none && len(r.proofs) > 0 && !r.broken:
		return "proof is wrong"
	case r.accused():
		return "accused"
	case r.missed():
		return "missed"
	case len(r.hidden) > 0:
		return "hidden"
	}
	return ""
}

func (j *job) one(p pair, seed uint64) result {
	w := simulate(p, seed)
	r := result{pair: p, seed: seed, ask: j.ask, broken: w.broken, h: w.history()}
	r.proofs = read(r.h).prove()
	r.answered = j.ask(r.h)
	if j.facts && p.wrong != none && len(r.fails) > 0 {
		r.hidden = hide(r.h)
	}
	return r
}

// all makes j.n histories without a mistake, then j.n histories with one. It takes turns with the pairs (a lock and a
// mistake) that the job selects. The function each receives the results in the order of their numbers.
func (j *job) all(each func(*result)) {
	for _, right := range []bool{true, false} {
		list := slices.DeleteFunc(pairs(right), func(p pair) bool {
			return j.kind != "" && p.kind.name != j.kind || j.wrong != "" && p.wrong.String() != j.wrong &&
				(j.wrong != "any" || right) || j.facts && right
		})
		for from := 0; from < j.n && len(list) > 0; from += 1024 {
			batch := make([]result, min(1024, j.n-from))
			var going sync.WaitGroup
			next := make(chan int)
			for range runtime.GOMAXPROCS(0) {
				going.Go(func() {
					for i := range next {
						n := from + i
						batch[i] = j.one(list[n%len(list)], j.seed+uint64(n/len(list)))
					}
				})
			}
			for i := range batch {
				next <- i
			}
			close(next)
			going.Wait()
			for i := range batch {
				each(&batch[i])
			}
		}
	}
}

// counts is a row of the printed table.
type counts struct{ histories, provable, fails, wrong, broke int }

const (
	worstShare = 0.005 // share of provable violations that may be missed
	keptOfEach = 3     // saved examples of each class
)

// run judges the histories and prints a table. It returns false if the judge is wrong.
func (j *job) run(out io.Writer) (ok bool, err error) {
	rows, classes, hidden, tried, proved := map[pair]*counts{}, map[string]int{}, map[string]int{}, 0, certificates{}
	j.all(func(r *result) {
		row := rows[r.pair]
		if row == nil {
			row = &counts{}
			rows[r.pair] = row
		}
		row.add(r)
		proved.add(r.answered.proved)
		for fact := range r.hidden {
			hidden[fact]++
		}
		if r.pair.wrong != none && len(r.fails) > 0 {
			tried++
		}
		if class := r.class(); class != "" {
			if classes[class]++; classes[class] <= keptOfEach && err == nil {
				err = j.show(out, class, r)
			}
		}
	})
	var sum counts
	fmt.Fprintf(out, "%-12s %-24s %9s %9s %9s %9s %9s\n", "kind", "mistake", "histories", "provable", "FAIL", "wrongly",
		"panics")
	for _, p := range slices.Concat(pairs(true), pairs(false)) {
		if c := rows[p]; c != nil {
			fmt.Fprintf(out, "%-12s %-24s %9d %9d %9d %9d %9d\n", p.kind.name, p.wrong, c.histories, c.provable,
				c.fails, c.wrong, c.broke)
			if p.wrong != none {
				sum.provable += c.provable
			}
			sum.broke += c.broke
		}
	}
	proved.write(out)
	missed, accused := 0, 0
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		fmt.Fprintf(out, "%6d  %s\n", classes[class], class)
	}
	for p, c := range rows {
		if p.wrong == none {
			accused += c.wrong
		} else {
			missed += c.wrong
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(hidden)) {
		fmt.Fprintf(out, "%6d of %d failures hidden by: %s\n", hidden[fact], tried, fact)
	}
	fmt.Fprintf(out, "right: %d accused; wrong: %d of %d provable missed (%.2f %%); %d break-downs\n", accused, missed,
		sum.provable,
		100*float64(missed)/float64(max(sum.provable, 1)), sum.broke)
	return accused == 0 && len(hidden) == 0 && sum.broke == 0 && float64(missed) <= worstShare*float64(sum.provable),
		err
}

func (c *counts) add(r *result) {
	c.histories++
	if len(r.proofs) > 0 {
		c.provable++
	}
	if len(r.fails) > 0 {
		c.fails++
	}
	if r.accused() || r.missed() {
		c.wrong++
	}
	if r.wrong != "" {
		c.broke++
	}
}

// class describes what is wrong with an answer. Answers of the same class are counted together.
func (r *result) class() string {
	switch what := r.bad(); what {
	case "":
		return ""
	case "hidden":
		return fmt.Sprintf("%s %s/%s %v by %v", what, r.pair.kind.name, r.pair.wrong, r.fails,
			slices.Sorted(maps.Keys(r.hidden)))
	case "accused":
		return fmt.Sprintf("%s %s %v", what, r.pair.kind.name, r.fails)
	case "breaks down":
		text, _, _ := strings.Cut(r.wrong, "\n")
		return fmt.Sprintf("%s %s/%s %s", what, r.pair.kind.name, r.pair.wrong, text)
	default:
		return fmt.Sprintf("%s %s/%s: %s", what, r.pair.kind.name, r.pair.wrong, strings.Join(words(r.proofs), ", "))
	}
}

// only reports whether every text has one of these beginnings.
func only(texts []string, begins ...string) bool {
	return !slices.ContainsFunc(texts, func(t string) bool {
		return !slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(t, b) })
	})
}

// words returns the kinds of the proofs: their texts without the operations' IDs.
func words(proofs []string) (list []string) {
	for _, p := range proofs {
		fields := slices.DeleteFunc(strings.Fields(p), func(f string) bool {
			return strings.ContainsAny(f, ".0123456789")
		})
		list = append(list, strings.Join(fields, " "))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// show saves a wrongly judged history, shrunk, and prints how to make it again.
func (j *job) show(out io.Writer, class string, r *result) error {
	fmt.Fprintf(out, "%s\n  simulate -n 1 -kind %s -wrong %q -seed %d\n", class, r.pair.kind.name, r.pair.wrong, r.seed)
	for _, p := range r.proofs[:min(len(r.proofs), 3)] {
		fmt.Fprintf(out, "  %s\n", p)
	}
	if j.dir == "" {
		return nil
	}
	h := shrink(r)
	name := filepath.Join(j.dir, strings.NewReplacer(" ", "-", "/",
		"-").Replace(fmt.Sprintf("%s %s %s %d.jsonl", r.bad(), r.pair.kind.name, r.pair.wrong, r.seed)))
	if err := save(name, h); err != nil {
		return err
	}
	fmt.Fprintf(out, "  verify check %s  # %d of %d operations\n", name, len(h.Ops), len(r.h.Ops))
	return nil
}

func save(name string, h *history.History) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := history.WriteJSONL(f, h); err != nil {
		f.Close()
		return fmt.Errorf("save %s: %w", name, err)
	}
	return f.Close()
}
