package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"hammerlock/internal/cli"
	"hammerlock/internal/live"
)

// TestMain lets the test's own program be an instance of the service.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestTheTable runs the demonstration: two instances of a service without a distributed lock lose page views.
func TestTheTable(t *testing.T) {
	if _, err := findNginx(); err != nil {
		t.Skip(err)
	}
	visits := visitors
	if testing.Short() {
		visits = 100
	}
	t.Chdir(t.TempDir())
	live.Again(t, func(int) (undecided string) {
		all, err := demonstrate(t.Context(), t.Output(), visits)
		if err != nil {
			t.Fatal(err)
		}
		var table bytes.Buffer
		otherwise := write(&table, all)
		t.Log("\n" + table.String())
		for _, r := range all {
			switch {
			case r.acknowledged != int64(visits) || r.safe && r.counted != int64(visits):
				t.Errorf("%s, %s: %d of %d acknowledged, %d counted", r.route, human(r.instances), r.acknowledged,
					visits, r.counted)
			case r.exit == 3 || !r.safe && r.exit == 0: // no two requests met where they must not
				undecided = otherwise.Error()
			}
		}
		if otherwise != nil && undecided == "" {
			t.Error(otherwise)
		}
		return undecided
	})
}

// TestTheTableSaysWhatIsOtherwise writes tables of demonstrations that went wrong.
func TestTheTableSaysWhatIsOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		row  row
		want string
	}{
		"as it should be":    {row{safe: true}, ""},
		"caught":             {row{exit: 1, lost: 3}, ""},
		"a safe one loses":   {row{safe: true, exit: 1, lost: 3}, "3 lost"},
		"nothing was lost":   {row{exit: 0}, "0 lost"},
		"nothing was proven": {row{safe: true, exit: 3, reason: "too few"}, "too few"},
	} {
		t.Run(name, func(t *testing.T) {
			err := write(&bytes.Buffer{}, []row{c.row})
			if (err != nil) != (c.want != "") || err != nil &&
				(!errors.Is(err, errOtherwise) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAnotherLanguage visits the service in Python.
func TestAnotherLanguage(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	for route, want := range map[string]int{"v1": 1, "v2": 0} {
		live.Again(t, func(int) string {
			got, d, said := visitPython(t, python, route)
			if got == 3 || got == 0 && want == 1 { // no two requests met where they must not
				return d.Exit.Reason
			}
			if got != want {
				t.Errorf("%s: exit code %d, want %d: %v %s", route, got, want, d.Exit.Reason, said)
			}
			return ""
		})
	}
}

func visitPython(t *testing.T, python, route string) (exit int, d cli.Document, said string) {
	addrs, err := free(1)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addrs[0])
	url := "http://" + addrs[0] + "/" + route + "/pview"
	var stdout, stderr bytes.Buffer
	exit = cli.Verify(t.Context(),
		cli.Env{Stdout: &stdout, Stderr: &stderr,
			Args: []string{"http", "--burst", "100", "--json", "--quiet", "--out", t.TempDir(),
				"--serve", fmt.Sprintf("exec '%s' pageviews.py %s %s", python, host, port), "--visit", "POST " + url,
				"--count", "GET " + url}})
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil {
		t.Fatalf("%s: exit code %d: %v %s", route, exit, err, &stderr)
	}
	return exit, d, stderr.String()
}
