package drivers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hammerlock/internal/live"
)

// slips are mistakes of beginners, as methods that replace those of a correct lock. The contract test must fail and
// name the mistake. If right is true, the slip is harmless and the test must pass.
var slips = map[string]struct {
	python, node string
	right        bool
	says         string // a pattern
}{
	"no return in release": {python: `
    def release(self, *words): super().release(*words)`, node: `
  async release(...words) { await super.release(...words); }`,
		says: `release \(.*test_slip.py:5\) returned None|release of Slip returned undefined`},
	"no return in acquire": {python: `
    def acquire(self, *words): super().acquire(*words)`, node: `
  async acquire(...words) { await super.acquire(...words); }`,
		says: `None only, which means busy: is a return missing|acquire of Slip returned undefined`},
	"an exit": {python: `
    def acquire(self, *words): raise SystemExit(3)`, node: `
  async acquire() { throw new Error("out"); }`,
		says: `SystemExit\(3\), .*test_slip.py:5|Error: out at Slip.acquire .*slip.test.js:\d+`},
	"a token in bytes": {right: true, python: `
    async def acquire(self, key, token, ttl): return super().acquire(key, token[1:], ttl) and token[1:].encode()
    def close(self): print("closed")`, node: `
  constructor(sites) { super(sites); this.timer = setInterval(() => {}, 1000); }
  async acquire(key, token, ttl) {
    return (await super.acquire(key, token.slice(1), ttl)) && Buffer.from(token.slice(1));
  }
  close() { clearInterval(this.timer); console.log("closed"); }`, says: "closed"},
}

// TestLiveSlips: the mistake is named, with its line, and no other cause is. A client that stays open is closed.
func TestLiveSlips(t *testing.T) {
	if testing.Short() {
		t.Skip("runs of several seconds")
	}
	verify, node, dir := built(t), bareNode(t), t.TempDir()
	example, err := os.ReadFile("node/example.test.js")
	if err != nil {
		t.Fatal(err)
	}
	hammerlock, err := filepath.Abs("node/hammerlock")
	if err != nil {
		t.Fatal(err)
	}
	lock, _, found := strings.Cut(string(example), "// Is broken:")
	if !found {
		t.Fatal("the example has no broken lock")
	}
	lock = strings.Replace(lock, "./hammerlock", hammerlock, 1)
	for name, slip := range slips {
		python := "import hammerlock, test_example\n\n\nclass Slip(test_example.Lock):" + slip.python +
			"\n\n\nTestSlip = hammerlock.tests(Slip, scenarios=['contention'])\n"
		js := lock + "class Slip extends Lock {" + slip.node + "\n}\ntests(Slip, { scenarios: ['contention'] });\n"
		for _, r := range []struct {
			file, text string
			words      []string
		}{
			{"test_slip.py", python, []string{live.Python(t, "json"), "-m", "unittest", "test_slip"}},
			{"slip.test.js", js, []string{node, "--test", "slip.test.js"}},
		} {
			t.Run(name+" in "+r.file, func(t *testing.T) {
				if err := os.WriteFile(filepath.Join(dir, r.file), []byte(r.text), 0o644); err != nil {
					t.Fatal(err)
				}
				live.Again(t, func(int) (undecided string) {
					text, err := inRunner(t, dir, verify, r.words)
					if slip.right && err != nil && strings.Contains(text, "undecided: ") {
						return text
					}
					if slip.right != (err == nil) || !regexp.MustCompile(slip.says).MatchString(text) ||
						strings.Contains(text, "hung-call") {
						t.Errorf("%v:\n%s", err, text)
					}
					return ""
				})
			})
		}
	}
}
