package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// everyCommand calls f for every command of both programs that help shows.
func everyCommand(t *testing.T, f func(e Env, c *cobra.Command, out *bytes.Buffer)) {
	t.Helper()
	var out bytes.Buffer
	e := Env{Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}
	n := 0
	for _, root := range []*cobra.Command{e.benchCommand(), e.verifyCommand()} {
		root.AddCommand(e.manualCommand(), e.explainCommand())
		for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
			if !c.Hidden {
				out.Reset()
				f(e, c, &out)
				n++
			}
		}
	}
	if n < 25 {
		t.Errorf("%d commands: some are missing", n)
	}
}

// of returns the command that a line of an example calls.
func of(c *cobra.Command, line string) *cobra.Command {
	words := strings.Fields(line)
	root := c.Root()
	if len(words) > 0 && words[0] != root.Name() && slices.Contains([]string{"bench", "verify"}, words[0]) {
		root = Env{}.benchCommand()
		if words[0] == "verify" {
			root = Env{}.verifyCommand()
		}
	}
	if len(words) < 2 || words[0] != root.Name() {
		return c
	}
	if found, _, err := root.Find(words[1:2]); err == nil {
		return found
	}
	return root
}

// TestHelpNamesFlagsOfItsCommand: each flag that the help of a command mentions exists in that command. In a line
// that calls another command, as examples do, the flags exist in the command that the line calls.
func TestHelpNamesFlagsOfItsCommand(t *testing.T) {
	found := 0
	everyCommand(t, func(e Env, c *cobra.Command, out *bytes.Buffer) {
		if err := e.helpOf(c); err != nil {
			t.Error(err)
		}
		all := strings.Join(strings.Fields(out.String()), " ")
		elsewhere := func(flag string) bool { // as in: a bench or verify with --agents
			return strings.Contains(all, "bench --"+flag) || strings.Contains(all, "verify with --"+flag)
		}
		for line := range strings.Lines(out.String()) {
			to := of(c, line)
			for _, m := range inText.FindAllStringSubmatch(line, -1) {
				found++
				if to.Flags().Lookup(m[1]) == nil && !elsewhere(m[1]) && m[1] != "help" && m[1] != "version" {
					t.Errorf("%s: %s has no flag --%s: %s", c.CommandPath(), to.CommandPath(), m[1], line)
				}
			}
		}
	})
	if found < 200 {
		t.Errorf("%d flags were found in help: the test does not see what it says", found)
	}
}

// TestHelpOfASection: help has each section that the first screen of help offers.
func TestHelpOfASection(t *testing.T) {
	for _, program := range []func(context.Context, Env) int{Bench, Verify} {
		for _, s := range sections {
			if text := answered(t, program, "help", s.Name); !strings.HasPrefix(text, s.Name+": "+s.About+
				"\n\n      --") {
				t.Errorf("help %s: got %s", s.Name, text)
			}
		}
	}
	if text := answered(t, Verify, "help", "explore"); strings.Contains(text, "SECTION") {
		t.Errorf("explore has no sections:\n%s", text)
	}
}

func answered(t *testing.T, program func(context.Context, Env) int, args ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	if code := program(t.Context(), Env{Args: args, Stdout: &out, Stderr: &complaints}); code != Passed {
		t.Errorf("%q: exit code %d, %s", args, code, &complaints)
	}
	return out.String()
}

// TestLiveWhatNamesADeploymentGetsItsSecrets: every command with --addr gets the deployment's secrets.
func TestLiveWhatNamesADeploymentGetsItsSecrets(t *testing.T) {
	server := testbed.Up(t, "single", topologies.Options{}).Nodes[0]
	testbed.Command(t, server, "ACL", "SETUSER", "reader", "on", ">open-sesame", "~*", "+@connection", "+info", "+role")
	more := map[string][]string{"ab": {"lock=lease", "lock=lease"}, "search": {"--slo", "response.p99<1s"}}
	n := 0
	everyCommand(t, func(_ Env, c *cobra.Command, _ *bytes.Buffer) {
		if c.Flags().Lookup(addrFlag) == nil {
			return
		}
		n++
		program, args := Bench, []string{"--topology", "single", "--addr", server.Addr(), "--out", t.TempDir()}
		if c.Root().Name() == "verify" {
			program = Verify
		}
		if c.Name() == "wire" { // its topology is what to start
			args = []string{"wire", "--locks", "l", "--addr", server.Addr(), "--out", t.TempDir(), "--", "true"}
		} else if c.HasParent() {
			args = slices.Concat([]string{c.Name()}, more[c.Name()], args)
		}
		var out, complaints bytes.Buffer
		program(t.Context(), Env{Args: args, Stdout: &out, Stderr: &complaints, Stdin: strings.NewReader(""),
			Getenv: func(name string) string {
				return map[string]string{
					"HAMMERLOCK_REDIS_USER": "reader", "HAMMERLOCK_REDIS_PASSWORD": "open-sesame",
				}[name]
			}})
		if said := complaints.String(); c.Name() != "plan" && !strings.Contains(said, "NOPERM") ||
			strings.Contains(said, "asks for a password") {
			t.Errorf("%s: %s", c.CommandPath(), said)
		}
	})
	if n < 9 {
		t.Errorf("%d commands have --addr", n)
	}
}
