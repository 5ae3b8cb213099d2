package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hammerlock/history"
)

// mostMemory is the most bytes that judging a file of less than 200 KB may allocate.
const mostMemory = 256 << 20

var (
	numbers  = regexp.MustCompile(`-?[0-9]+`)
	extremes = []string{"-1", "0", "1", "2", "32767", "65535", "16777215", "16777216", "2147483647", "3600000000000",
		"4611686018427387904",
		"9223372036854775806", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e30"}
)

// damage changes one place in a file of JSON lines.
func damage(r *rand.Rand, file []byte) []byte {
	lines := bytes.SplitAfter(file, []byte("\n"))
	at, to := r.IntN(len(lines)), r.IntN(len(lines))
	if r.IntN(4) == 0 {
		at = 0 // the header is the line with the most content
	}
	switch r.IntN(16) {
	case 0:
		lines[at], lines[to] = lines[to], lines[at]
	case 1:
		lines[at] = lines[to]
	case 2:
		lines[at] = nil
	case 3:
		if n := len(lines[at]); n > 0 {
			lines[at] = bytes.Clone(lines[at])
			lines[at][r.IntN(n)] ^= 1 << r.IntN(8)
		}
	case 4:
		lines[at] = lines[at][:r.IntN(len(lines[at])+1)]
	default: // a number
		if all := numbers.FindAllIndex(lines[at], -1); len(all) > 0 {
			n, other := all[r.IntN(len(all))], []byte(extremes[r.IntN(len(extremes))])
			if others := numbers.FindAll(lines[to], -1); len(others) > 0 && r.IntN(4) > 0 {
				other = others[r.IntN(len(others))]
			}
			lines[at] = slices.Concat(lines[at][:n[0]], other, lines[at][n[1]:])
		}
	}
	return bytes.Join(lines, nil)
}

// native writes a history in the native format.
func native(w io.Writer, h *history.History) error {
	f, err := history.Create(w, h.Header)
	for i := range h.Ops {
		err = cmp.Or(err, f.Add(&h.Ops[i]))
	}
	return cmp.Or(err, f.Close(h.Partial))
}

// scratch changes a byte of a file, or cuts its end off.
func scratch(r *rand.Rand, file []byte) []byte {
	at := r.IntN(len(file))
	if r.IntN(2) == 0 {
		return file[:max(at, 1)]
	}
	file[at] ^= 1 << r.IntN(8)
	return file
}

// judgeFile judges a file, and fails the test if the judge panics or allocates too much. It reports whether the file
// was judged.
func judgeFile(t *testing.T, name string) bool {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, err := history.Open(name)
	wrong := ""
	if err == nil {
		wrong = judge(h).wrong
	}
	runtime.ReadMemStats(&after)
	if strings.HasPrefix(wrong, "panic") || after.TotalAlloc-before.TotalAlloc > mostMemory {
		file, _ := os.ReadFile(name)
		kept := filepath.Join(t.ArtifactDir(), filepath.Base(name))
		t.Errorf("%s: %d MB, %s (%v)", kept, (after.TotalAlloc-before.TotalAlloc)>>20, wrong,
			os.WriteFile(kept, file, 0o644))
	}
	return err == nil && wrong == ""
}

// TestDamagedFilesAreJudgedOrRefused: no damage makes the judge panic, loop forever or use unlimited memory.
func TestDamagedFilesAreJudgedOrRefused(t *testing.T) {
	n, judged := 2000, 0
	if testing.Short() {
		n = 300
	}
	list, dir := append(pairs(true), pairs(false)...), t.TempDir()
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		var b bytes.Buffer
		write, harm := history.WriteJSONL, damage
		if seed%8 == 0 {
			write, harm = native, scratch
		}
		if err := write(&b, simulate(list[seed%len(list)], uint64(seed)).history()); err != nil {
			t.Fatal(err)
		}
		file := b.Bytes()
		for range 1 + r.IntN(2) {
			file = harm(r, file)
		}
		name := filepath.Join(dir, fmt.Sprintf("damaged-%d.jsonl", seed))
		if err := os.WriteFile(name, file, 0o644); err != nil {
			t.Fatal(err)
		}
		if judgeFile(t, name) {
			judged++
		}
	}
	t.Logf("%d of %d files were judged", judged, n)
	if judged < n/20 || judged == n {
		t.Errorf("%d of %d files were judged", judged, n)
	}
}

// TestSmallFilesTakeLittleMemory: large numbers of keys or workers in the header take no memory.
func TestSmallFilesTakeLittleMemory(t *testing.T) {
	for name, text := range map[string]string{
		"keys": `"workers":1,"keys":16777216}` + "\n" +
			`{"op":"acquire","id":"1.1","worker":0,"key":16777215,"call_ns":1}`,
		"workers": `"workers":16777216,"keys":1}` + "\n" +
			`{"op":"acquire","id":"1.1","worker":16777215,"key":0,"call_ns":1}`,
		"most keys": `"workers":1,"keys":2147483647}` + "\n" +
			`{"op":"acquire","id":"1.1","worker":0,"key":1048639,"call_ns":1}`,
		"last worker": `"workers":16777216,"keys":1}` + "\n" +
			`{"op":"acquire","id":"1.1","worker":65599,"key":0,"call_ns":1}`,
		"lane": `"workers":1,"keys":1}` + "\n" + `{"op":"acquire","id":"16777214.1","worker":0,"key":0,"call_ns":1}`,
	} {
		file := filepath.Join(t.TempDir(), strings.ReplaceAll(name, " ", "-")+".jsonl")
		if err := os.WriteFile(file,
			[]byte(`{"format":"hammerlock-history","version":1,`+text+"\n"+`{"end":"complete"}`+"\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		t.Log(name, judgeFile(t, file))
	}
}
