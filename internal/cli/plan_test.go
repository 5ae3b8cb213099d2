package cli

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
)

// TestFoldersOfTheSameSecond: commands with the same seed that begin at the same time write into different folders.
func TestFoldersOfTheSameSecond(t *testing.T) {
	if a, b := folder(harness.Plan{}, "explore-lease"), folder(harness.Plan{}, "explore-lease"); a == b {
		t.Errorf("both in %s", a)
	}
}

// truth matches a word that a reader of YAML 1.1 takes for true or false.
var truth = regexp.MustCompile(`(?m)^[a-z-]+: (on|off|yes|no|y|n)\b`)

// TestAPrintedPlanFitsTheSchema checks the plans of all commands against what schema prints.
func TestAPrintedPlanFitsTheSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(answered(t, Bench, "schema", "plan")), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	service := []string{"http", "plan", "--visit", "POST http://h/v", "--count", "GET http://h/v", "--name", "7"}
	for _, args := range [][]string{{"bench", "plan", "--count", "2"},
		{"verify", "plan", "--scenario", "crash,late-holder"},
		{"verify", "plan", "--fault", "none", "--aof", "everysec"}, append([]string{"bench"}, service...),
		append([]string{"verify"}, service...)} {
		program := Bench
		if args[0] == "verify" {
			program = Verify
		}
		text := answered(t, program, args[1:]...)
		var plan any
		if err := yaml.Unmarshal([]byte(text), &plan); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if err := schema.Validate(plan); err != nil {
			t.Errorf("%q: %v\n%s", args, err, text)
		}
		if found := truth.FindString(text); found != "" {
			t.Errorf("%q: a reader of YAML 1.1 takes this for true or false: %s", args, found)
		}
	}
}

// TestAMisspeltVariableIsAMistake: a variable whose name is almost that of a flag is refused, and others are not.
func TestAMisspeltVariableIsAMistake(t *testing.T) {
	for variable, want := range map[string]string{
		"HAMMERLOCK_WOKERS=5": "error: HAMMERLOCK_WOKERS: no such variable; " +
			"did you mean HAMMERLOCK_WORKERS?\n",
		"HAMMERLOCK_SCENARIO=crash":          "", // of verify
		"HAMMERLOCK_TTL=5s":                  "", // the former name of lease
		"HAMMERLOCK_WOKERS=":                 "",
		"HAMMERLOCK_CLOCK=/clock":            "", // what the suite sets
		"HAMMERLOCK_PORT=tcp://10.0.0.1:22":  "", // what Kubernetes sets for a service of this name
		"HAMMERLOCK_SERVICE_HOST=10.0.0.1":   "",
		"HAMMERLOCK_SERVICE_PORT_NATS=4222":  "",
		"HAMMERLOCK_PORT_4222_TCP_PROTO=tcp": "",
	} {
		var out, complaints bytes.Buffer
		Bench(t.Context(), Env{Args: []string{"plan"}, Environ: []string{variable}, Stdout: &out, Stderr: &complaints})
		if complaints.String() != want {
			t.Errorf("%s: got %s, want %s", variable, complaints.String(), want)
		}
	}
}

// TestAPlanThatCannotBeReadIsTheOnlyMistake: what the plan lacks is unknown.
func TestAPlanThatCannotBeReadIsTheOnlyMistake(t *testing.T) {
	for _, args := range [][]string{{"http", "--plan", "nosuch.yaml"}, {"http", "plan", "nosuch.yaml"}} {
		var out, complaints bytes.Buffer
		code := Verify(t.Context(), Env{Args: args, Stdout: &out, Stderr: &complaints})
		if lines := slices.Collect(strings.Lines(complaints.String())); code != Usage || len(lines) != 1 {
			t.Errorf("%q: exit code %d, %q", args, code, lines)
		}
	}
}
