package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hammerlock/history"
)

// damagedRuns has command lines that read damaged runs, and what is damaged.
var damagedRuns = map[string]string{
	"bench report half":                       "half/run.json is damaged: unexpected end of JSON input",
	"bench report whole half":                 "half/run.json is damaged: unexpected end of JSON input",
	"bench report empty":                      "empty/run.json is damaged: unexpected end of JSON input",
	"bench compare whole empty":               "empty/run.json is damaged: unexpected end of JSON input",
	"bench replay half":                       "half/run.json is damaged: unexpected end of JSON input",
	"verify check half":                       "half/run.json is damaged: unexpected end of JSON input",
	"verify certify half":                     "half/run.json is damaged: unexpected end of JSON input",
	"verify export half":                      "half/run.json is damaged: unexpected end of JSON input",
	"bench report whole zero":                 "zero/history.bin is damaged: scan: byte 0: not the beginning",
	"bench report whole cut":                  "cut/history.bin is damaged: its end is missing, although",
	"bench report whole cut --html page.html": "cut/history.bin is damaged: its end is missing, although",
	"verify check none":                       "none/history.bin is damaged: line 1: the file is empty",
	"verify certify none":                     "none/history.bin is damaged: line 1: the file is empty",
	"verify export none":                      "none/history.bin is damaged: line 1: the file is empty",
	"bench replay none":                       "none/history.bin is damaged: line 1: the file is empty",
	"bench report whole log":                  "log/latency.hlog is damaged: ",
	"bench report whole log --html page.html": "log/latency.hlog is damaged: ",
	"bench report whole noise":                "noise/latency.hlog is damaged: it does not begin as it should",
}

// TestADamagedRunIsNoInvalidCommandLine: each command names the damaged file in one line, and its exit code says that
// something is broken. A report shows the runs that are whole.
func TestADamagedRunIsNoInvalidCommandLine(t *testing.T) {
	t.Chdir(t.TempDir())
	var cut bytes.Buffer
	if f, err := history.Create(&cut, history.Header{}); err != nil || f.Flush() != nil {
		t.Fatal(err)
	}
	const record = `{"schema": 1, "recorded": true}`
	const log = "#[Logged with Hammerlock]\nTag=acquire,0.0,1.0,120.0,HISTFAAAAU142iyRQY7VQAxE67"
	for name, text := range map[string]string{
		"whole/run.json": `{"schema": 1, "lock": "untouched"}`,
		"half/run.json":  record[:20], "half/history.bin": cut.String(), "empty/run.json": "",
		"zero/run.json": record, "zero/history.bin": strings.Repeat("\x00", 100),
		"none/run.json": record, "none/history.bin": "",
		"cut/run.json": record, "cut/history.bin": cut.String(),
		"log/run.json": `{"schema": 1}`, "log/latency.hlog": log,
		"noise/run.json": `{"schema": 1}`, "noise/latency.hlog": "\x01\xff\n\x02",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, damage := range damagedRuns {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			var out, complaints bytes.Buffer
			run := map[string]func(Env) int{
				"bench":  func(e Env) int { return Bench(t.Context(), e) },
				"verify": func(e Env) int { return Verify(t.Context(), e) }}[args[0]]
			code := run(Env{Args: args[1:], Stdout: &out, Stderr: &complaints,
				Getenv: func(string) string { return "" }})
			lines := slices.DeleteFunc(slices.Collect(strings.Lines(complaints.String())), func(line string) bool {
				return strings.HasPrefix(line, "wrote ")
			})
			if code != Broken || len(lines) != 1 || !strings.HasPrefix(lines[0], "error: "+damage) {
				t.Errorf("exit code %d, %q", code, lines)
			}
			shown := out.String()
			if page, err := os.ReadFile("page.html"); err == nil && strings.Contains(line, "--html") {
				shown = string(page)
			}
			if strings.HasPrefix(line, "bench report whole") && !strings.Contains(shown, "untouched") {
				t.Errorf("the whole run is not shown:\n%s", out.String())
			}
		})
	}
}
