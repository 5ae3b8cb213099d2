// Package certify checks certificates, which have proofs of the judge's verdicts on a history. It lists the verdicts
// that are proved, or returns the line where a certificate is wrong. It shares no code with the judge, and reads JSON
// lines. history/FORMAT.md describes both files.
package certify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// fact is a line of a certificate: an event in the story of a page, the chain of a page's stores, or a verdict with
// its proof.
type fact struct {
	At                        ns
	Does, Ends, Forgets, By   string
	Chain                     string
	Page                      int32
	Stores                    int
	Verdict                   string
	Status, Cause, Proof, Why string
	Of                        []string
	Certificate, End          string
	Facts, Ops                int
}

// Verdict is the result of the check for one of the judge's verdicts.
type Verdict struct {
	Checker, Status, Cause string
	Proof                  string // empty = not certified
	Of                     []string
	Why                    string // reason why it is not certified
}

// proof is a formula over a few operations. It can prove verdicts of the given checkers (judges), if they have the
// given status.
type proof struct {
	status, judges string
	holds          func(*History, []*op) bool
	says           string
}

var proofs = map[string]proof{
	"story": {"pass", "release linearizable", told, "every answer has its instant in the story"},
	"alone": {"pass", "exclusion", alone, "the story, and no two believed in the lock at once that exclude each other"},
	"leases": {"pass", "lease-validity", kept,
		"the story, and no holder was promised more than the lease"},
	"chain": {"pass", "lost-updates", chained,
		"the acknowledged stores are in the chain that ends in what was read at the end, and no load saw an old one"},
	"order": {"pass", "fencing", ordered,
		"a grant has a greater token than all that were answered before its call"},
	"window": {"inconclusive", "", excused,
		"the first reaches the others: servers may have forgotten, or a process was paused"},
	"core": {"fail", "exclusion release lease-validity linearizable", contradicts, "the calls have no legal order"},
	"belief": {"fail", "exclusion linearizable", believing,
		"more believed in the lock at once than it has room for"},
	"use": {"fail", "exclusion", overran,
		"the store is of the first, whose hold was over, and the second had begun"},
	"claim": {"fail", "lease-validity", claimed, "until > return + T1 + round + linger"},
	"replaced": {"fail", "lost-updates", replaced,
		"both stores were acknowledged and replaced the same one"},
	"outside": {"fail", "lost-updates", outside,
		"the acknowledged store is not in the chain of what was read at the end"},
	"stale": {"fail", "lost-updates", stale,
		"the load saw an older store than the one acknowledged before its call"},
	"changed": {"fail", "lost-updates", changed, "two loads of a shared hold saw different stores"},
	"value": {"fail", "lost-updates", misread,
		"the value is not that of the store that was seen, or one more if it is a store"},
	"fence": {"fail", "fencing", regressed, "the second came after the first, and has no greater token"},
	"found": {"fail", "exclusion liveness", found,
		"the key was there although its acquire was refused or its hold released"},
	"expiry": {"fail", "liveness", outlived, "the key has a longer life than any lease"},
	"unrenewed": {"fail", "lease-validity exclusion", unrenewed,
		"the lease ran out while the process ran, servers served, and no renewal was under way"},
}

// Check checks a certificate. An error gives the number of the line that is wrong.
func (h *History) Check(r io.Reader) (all []Verdict, err error) {
	in, n, last := bufio.NewScanner(r), 0, fact{}
	in.Buffer(make([]byte, 1<<16), 2<<20)
	for in.Scan() {
		n++
		f := fact{}
		d := json.NewDecoder(strings.NewReader(in.Text()))
		d.DisallowUnknownFields()
		err := d.Decode(&f)
		switch {
		case err != nil:
		case n == 1 && (f.Certificate != "hammerlock" || f.Ops != len(h.list)), n > 1 && f.Certificate != "",
			last.End != "":
			err = fmt.Errorf("not a certificate of this history of %d operations", len(h.list))
		case f.Does+f.Ends+f.Forgets != "":
			err = h.happens(&f)
		case f.Chain != "":
			err = h.follow(&f)
		case f.Verdict != "":
			var v Verdict
			v, err = h.verdict(&f)
			all = append(all, v)
		case f.End != "" && f.Facts != n:
			err = fmt.Errorf("%d lines, not %d", n, f.Facts)
		}
		if last = f; err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil || last.End == "" {
		return nil, errors.Join(fmt.Errorf("line %d: the certificate has no end", n+1), err)
	}
	return all, nil
}

// verdict checks the proof of a verdict.
func (h *History) verdict(f *fact) (v Verdict, err error) {
	v = Verdict{f.Verdict, f.Status, f.Cause, f.Proof, f.Of, f.Why}
	if f.Proof == "" {
		if f.Why == "" {
			return v, fmt.Errorf("the verdict on %s has neither a proof nor a reason why not", f.Verdict)
		}
		return v, nil
	}
	p, known := proofs[f.Proof]
	if !known || p.status != f.Status || p.judges != "" && !slices.Contains(strings.Fields(p.judges), f.Verdict) {
		return v, fmt.Errorf("no %s is a proof that %s is %s", f.Proof, f.Verdict, f.Status)
	}
	list, from, to := []*op(nil), forever, -forever
	for _, id := range f.Of {
		o := h.ops[id]
		if o == nil || slices.Contains(list, o) {
			return v, fmt.Errorf("%q is no operation, or named twice", id)
		}
		list, from = append(list, o), min(from, o.Call)
		if to = max(to, o.Call); o.Return != forever {
			to = max(to, o.Return)
		}
	}
	if p.status == "fail" {
		if len(list) == 0 {
			return v, fmt.Errorf("%s names no operation", f.Proof)
		}
		for _, w := range h.windows { // a claim is the lock's own statement, and a core tries the windows
			if f.Proof != "core" && f.Proof != "claim" && w.forgets && !w.planned && h.reaches(w.op.ID, from, to) {
				return v, fmt.Errorf("%s may explain it, and is no planned fault", w.op.ID)
			}
		}
	}
	if !p.holds(h, list) {
		return v, fmt.Errorf("%s of %s: it does not hold that %s", f.Proof, strings.Join(f.Of, " "), p.says)
	}
	return v, nil
}

// Contradict reports whether the calls have no legal order.
func (h *History) Contradict(calls []string) bool {
	f := fact{Verdict: "exclusion", Status: "fail", Proof: "core", Of: calls}
	_, err := h.verdict(&f)
	return err == nil
}

// Says describes the formula of a proof.
func Says(name string) string { return proofs[name].says }
