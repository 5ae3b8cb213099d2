package checker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hammerlock/certify"
	"hammerlock/history"
)

// contradicts runs the certifier on part of a history.
func contradicts(part *history.History, calls []string) bool {
	var text bytes.Buffer
	if err := history.WriteJSONL(&text, part); err != nil {
		return false
	}
	h, err := certify.Read(&text)
	return err == nil && h.Contradict(calls)
}

// certified writes a certificate of a history and checks it.
func certified(h *history.History) (text []byte, all []certify.Verdict, err error) {
	c, err := Prepare(h)
	if err != nil {
		return nil, nil, err
	}
	defer c.Free()
	verdicts, _ := Judge(c)
	var lines, certificate bytes.Buffer
	if err = c.WriteCertificate(&certificate, verdicts, contradicts); err == nil {
		err = history.WriteJSONL(&lines, h)
	}
	if err != nil {
		return nil, nil, err
	}
	read, err := certify.Read(&lines)
	if err != nil {
		return nil, nil, err
	}
	text = bytes.Clone(certificate.Bytes())
	all, err = read.Check(&certificate)
	return text, all, err
}

// TestACertificateOfUnequalClocks: the instants of a hold keep to the error of its own process's clock.
func TestACertificateOfUnequalClocks(t *testing.T) {
	s := newScript()
	s.Processes, s.Bounds.Agreement = 2, history.Agree([]history.Doubt{{Own: ms}, {Own: 7 * ms}})
	for at := time.Duration(0); at < 40; at += 4 {
		worker := int32(at/4%2 + 1)
		s.release(s.acquire(worker, 10*at, 10*at+1, 300), 10*at+20, 10*at+21)
	}
	for i := range s.Ops {
		s.Ops[i].Process = int16(s.Ops[i].Worker - 1)
	}
	_, all, err := certified(&s.History)
	if err != nil || !slices.ContainsFunc(all, func(v certify.Verdict) bool { return v.Proof == "story" }) {
		t.Errorf("%v, %v", all, err)
	}
}

// kept returns the histories of this package's tests, by name.
func kept(t *testing.T) map[string]*history.History {
	t.Helper()
	files, err := filepath.Glob("testdata/[ce]*/*.jsonl") // cases and excuse
	if err != nil || len(files) < 90 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	all := map[string]*history.History{}
	for _, file := range files {
		if all[file], err = history.Open(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range saved {
		s := newScript()
		test.write(s)
		s.prepare(t)
		all[name] = &s.History
	}
	return all
}

// TestCertificates writes and checks a certificate for each kept history: none may be refused.
func TestCertificates(t *testing.T) {
	t.Parallel()
	histories, counts := kept(t), map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(histories)) {
		text, all, err := certified(histories[name])
		if err != nil {
			n, line := 0, ""
			fmt.Sscanf(err.Error(), "line %d", &n)
			if lines := strings.Split(string(text), "\n"); n > 0 && n <= len(lines) {
				line = lines[n-1]
			}
			t.Errorf("%s: %v\n%s", name, err, line)
		}
		for _, v := range all {
			switch {
			case v.Proof != "":
				counts[v.Status+" certified by "+v.Proof]++
			case v.Status == "fail" || v.Status == "pass":
				counts[fmt.Sprintf("%s %s %s not certified: %s", v.Status, v.Checker, v.Cause, v.Why)]++
			}
		}
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%5d %s", n, what))
	}
	slices.Sort(lines)
	t.Log("\n" + strings.Join(lines, "\n"))
}

// TestCertificatesOfReentries: a lock that was acquired twice by its owner is free after the second release. There is
// a proof whether or not the lock reports the remaining entries, and also if only the inner release renewed the lease.
// If another worker is granted the lock between the two releases, exclusion fails.
func TestCertificatesOfReentries(t *testing.T) {
	for name, test := range map[string]struct {
		told       bool
		outer      time.Duration // call of the outer release
		call, ret  time.Duration // of the other worker's grant
		wantStatus string
	}{
		"told":                  {true, 350, 360, 361, "pass"},
		"counted":               {false, 350, 360, 361, "pass"},
		"renewed by release":    {false, 450, 460, 461, "pass"},
		"granted between":       {true, 350, 210, 340, "fail"},
		"granted between, both": {false, 350, 210, 340, "fail"},
	} {
		s := newScript()
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		s.last().Value = 1
		s.reenter(a, 100, 101, 300).Value = 2
		s.release(a, 200, 201).Value = 1
		if !test.told {
			for i := range s.Ops {
				s.Ops[i].Value = 0
			}
		}
		s.busy(2, 150, 151)
		s.release(a, test.outer, test.outer+1)
		s.release(s.acquire(2, test.call, test.ret, 300), 470, 471)
		s.prepare(t)
		_, all, err := certified(&s.History)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		i := slices.IndexFunc(all, func(v certify.Verdict) bool { return v.Checker == Exclusion.Name })
		if v := all[i]; v.Status != test.wantStatus || v.Status == "pass" && v.Proof == "" {
			t.Errorf("%s: got %+v, want a certified %s", name, v, test.wantStatus)
		}
	}
}

// number matches a number in a line of JSON, but not the digits of IDs and tokens.
var number = regexp.MustCompile(`:(\d+)`)

// mutate changes one number in a text, in a random line that has a number.
func mutate(r *rand.Rand, text []byte) []byte {
	lines := bytes.SplitAfter(bytes.Clone(text), []byte("\n"))
	for range 100 {
		n := r.IntN(len(lines))
		found := number.FindAllSubmatchIndex(lines[n], -1)
		if len(found) == 0 {
			continue
		}
		at := found[r.IntN(len(found))]
		was, _ := strconv.ParseInt(string(lines[n][at[2]:at[3]]), 10, 64)
		is := was
		switch r.IntN(4) {
		case 0:
			is += 1 + r.Int64N(3)
		case 1:
			is -= 1 + r.Int64N(3)
		case 2:
			is = was + r.Int64N(max(was, 2)) - max(was, 2)/2
		default:
			is = r.Int64N(max(2*was, 4))
		}
		if is = max(is, 0); is == was {
			continue
		}
		lines[n] = slices.Concat(lines[n][:at[2]], strconv.AppendInt(nil, is, 10), lines[n][at[3]:])
		return bytes.Join(lines, nil)
	}
	return nil
}

// TestCertificatesOfOtherNumbers changes one number of a history or of its certificate. If the certificate is
// still accepted, it must be true: the judge gives the same verdict on the changed history, or the changed instant
// is possible.
func TestCertificatesOfOtherNumbers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(58, 3))
	tried, accepted := 0, 0
	histories := kept(t)
	for _, name := range slices.Sorted(maps.Keys(histories)) {
		h := histories[name]
		text, all, err := certified(h)
		var lines bytes.Buffer
		if err != nil || history.WriteJSONL(&lines, h) != nil {
			t.Fatal(name, err)
		}
		for range 1 + many(200)/10 {
			changed := mutate(r, lines.Bytes())
			read, err := certify.Read(bytes.NewReader(changed))
			if err != nil {
				continue
			}
			tried++
			if _, err := read.Check(bytes.NewReader(text)); err != nil {
				continue
			}
			accepted++
			judged := judgedAs(t, changed)
			for _, v := range all {
				status := judged[v.Checker]
				// A core holds whatever servers may have forgotten.
				wrong := v.Status == "fail" && status == "pass" || v.Status == "pass" && status == "fail" ||
					v.Status == "fail" && v.Proof != "core" && status == "inconclusive"
				if wrong && v.Proof != "" {
					t.Errorf("%s: %s is certified as %s by %s %v, and is %s: %s", name, v.Checker, v.Status, v.Proof,
						v.Of, status, difference(lines.Bytes(), changed))
				}
			}
		}
	}
	t.Logf("%d histories with another number: %d certificates hold all the same", tried, accepted)
}

// judgedAs returns the verdicts on a history in lines, by checker; nothing if the history is invalid.
func judgedAs(t *testing.T, lines []byte) map[string]string {
	t.Helper()
	file, all := filepath.Join(t.TempDir(), "history.jsonl"), map[string]string{}
	if err := os.WriteFile(file, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	verdicts, _ := JudgeFile(file)
	for _, v := range verdicts {
		all[v.Checker] = v.Status.String()
	}
	return all
}

// TestCertificatesWithOtherNumbers changes one number of a certificate. If the certificate is still accepted, it must
// be another valid proof. The new number is an instant within the stamps of its call, or an end of a lease between T1
// and T2.
func TestCertificatesWithOtherNumbers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(58, 4))
	refused, others := 0, 0
	histories := kept(t)
	for _, name := range slices.Sorted(maps.Keys(histories)) {
		h := histories[name]
		text, _, err := certified(h)
		var lines bytes.Buffer
		if err != nil || history.WriteJSONL(&lines, h) != nil {
			t.Fatal(name, err)
		}
		for range 1 + many(200)/10 {
			changed := mutate(r, text)
			read, err := certify.Read(bytes.NewReader(lines.Bytes()))
			if err != nil || changed == nil {
				t.Fatal(name, err)
			}
			if _, err := read.Check(bytes.NewReader(changed)); err != nil {
				refused++
				continue
			}
			if others++; !imaginable(h, difference(text, changed)) {
				t.Errorf("%s: %s", name, difference(text, changed))
			}
		}
	}
	t.Logf("%d certificates with another number are refused, %d are other proofs", refused, others)
	if refused < 100 {
		t.Error("too few were refused")
	}
}

// imaginable reports whether the second of two lines of a certificate is a possible fact. Either the call was in
// progress at that time, or a lease that one of the hold's calls requested can have ended then.
func imaginable(h *history.History, both string) bool {
	_, line, _ := strings.Cut(both, "now ")
	var f struct {
		At                  int64
		Does, Ends, Forgets string
	}
	if json.Unmarshal([]byte(line), &f) != nil || f.Does+f.Ends+f.Forgets == "" {
		return false
	}
	at, half := time.Duration(f.At), h.Bounds.Slack/2+1
	for i := range h.Ops {
		op := &h.Ops[i]
		known := op.Outcome != history.Unknown
		switch {
		case f.Does == op.ID.String():
			return at >= op.Call-half && (!known || at <= plus(op.Return, half))
		case f.Ends == op.ID.String() || f.Ends != "" && f.Ends == op.Hold.String():
			r := rulesOf(h)
			if at >= minus(plus(op.Call, r.Least(op.TTL)), half) && at <= plus(op.Return, r.Most(op.TTL)+half) ||
				h.Session || op.Until != 0 {
				return true
			}
		case f.Forgets != "" && (op.Kind == history.Fault || op.Kind == history.Incident || op.Kind == history.Role):
			return at >= op.Call-h.Bounds.Slack
		}
	}
	return false
}

// difference is the first line that differs.
func difference(a, b []byte) string {
	was, is := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range was {
		if was[i] != is[i] {
			return was[i] + "\n  now " + is[i]
		}
	}
	return ""
}
