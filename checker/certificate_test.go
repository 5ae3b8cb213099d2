package checker

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hammerlock/certify"
	"hammerlock/history"
)

// contradicts asks the certifier.
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

// TestCertificates writes a certificate for each history that is kept, and checks it: none may be refused.
func TestCertificates(t *testing.T) {
	t.Parallel()
	histories := map[string]*history.History{}
	files, err := filepath.Glob("testdata/excuse/*.jsonl")
	if err != nil || len(files) < 90 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		h, err := history.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		histories[file] = h
	}
	for name, test := range saved {
		s := newScript()
		test.write(s)
		s.prepare(t)
		histories[name] = &s.History
	}
	counts := map[string]int{}
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
