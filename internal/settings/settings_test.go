package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"hammerlock/internal/settings"
)

// table is a command with one setting of each kind.
type table struct {
	settings.Set
	command *cobra.Command
	workers int
	lease   string
}

func newTable(t interface{ Fatal(...any) }, file string, args ...string) *table {
	o := &table{command: &cobra.Command{Use: "x"}, workers: 1, lease: "1s"}
	o.Set = settings.Of(o.command)
	o.Text(settings.Flag{Name: settings.FileFlag}, "file", &o.File).CommandLineOnly = true
	o.Integer(settings.Flag{Name: "workers"}, &o.workers, 100)
	o.Text(settings.Flag{Name: "lease"}, "duration", &o.lease)
	if file != "" {
		args = append(args, "--"+settings.FileFlag, file)
	}
	if err := o.Flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestTheStrongestOriginWins: a value on the command line overrides one from the environment, then the file, then a
// preset. In the environment, the present name of a setting overrides the former. The origin of the value is
// recorded.
func TestTheStrongestOriginWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	rapid.Check(t, func(t *rapid.T) {
		says := func(who string) bool { return rapid.Bool().Draw(t, who) }
		want, origin := "1s", ""
		var args []string
		env, text, preset := map[string]string{}, "workers: 2\n", says("preset")
		if preset {
			want, origin = "2s", "--quick"
		}
		if says("file") {
			text, want, origin = text+"lease: 3s\n", "3s", file+":2:8"
		}
		if says("variable before") {
			env["HAMMERLOCK_TTL"], want, origin = "4s", "4s", "HAMMERLOCK_TTL"
		}
		if says("variable") {
			env["HAMMERLOCK_LEASE"], want, origin = "5s", "5s", "HAMMERLOCK_LEASE"
		}
		if says("flag") {
			args, want, origin = []string{"--ttl", "6s"}, "6s", "--lease"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := newTable(t, file, args...)
		o.Settle(func(name string) string { return env[name] })
		if preset {
			o.Preset("--quick", "lease", "2s")
		}
		if o.lease != want || o.Origins["lease"] != origin || o.workers != 2 || len(o.Mistakes) > 0 {
			t.Fatalf("lease %s of %q, want %s of %q; workers %d, mistakes %s", o.lease, o.Origins["lease"], want,
				origin, o.workers, o.Mistakes)
		}
	})
}

// TestAMistakeHasItsPlace: a mistake in a file has its place, and one on the command line has none.
func TestAMistakeHasItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte("workers: many\nlaese: 1s\nplan: other.yaml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := newTable(t, file, "--lease", "")
	o.Settle(func(string) string { return "" })
	told := o.Placed(o.Mistakes).String()
	for _, want := range []string{
		`--lease "": it is empty`,
		fmt.Sprintf(`%s:1:10: --workers "many": a whole number`, file),
		file + ":2:1: laese: no such setting; did you mean lease?",
		file + ":3:1: plan: no such setting", // a plan cannot refer to another plan
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told: %s", want, told)
		}
	}
}
