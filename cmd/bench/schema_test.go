package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hammerlock/internal/cli"
	"hammerlock/results"
)

// TestDocumentsFitTheirSchemas: a record, a summary and a saved plan are valid under the schemas that the command
// "schema" prints. A document with a field of another type is invalid.
func TestDocumentsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "runs")
	phases := filepath.Join(t.TempDir(), "phases.yaml")
	if err := os.WriteFile(phases, []byte("phases: [{phase: warm-up, duration: 50ms, rate: 50/s}, {phase: steady, "+
		"duration: 400ms, rate: 50/s}]"),
		0o644); err != nil {
		t.Fatal(err)
	}
	summary := printed(t, "--redis-server", "embedded", "--topology", "single,redlock", "--lock", "auto,none",
		"--workers", "4",
		"--plan", phases, "--quiet", "--json", "--gate", "throughput>1/s", "--out", out)
	record, err := os.ReadFile(filepath.Join(out, "latest", results.RunFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(record, []byte("{\n  \"schema\": 1,\n")) {
		t.Errorf("the record begins with %.40q", record)
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "0")
	}))
	defer service.Close()
	visited := printed(t, "http", "--visit", "POST "+service.URL, "--count", "GET "+service.URL, "--burst", "5",
		"--quiet", "--json", "--out", out)
	for name, c := range map[string]struct {
		schema      string
		text        []byte
		field, fake string
	}{
		"run":       {"run", record, `"workers": 4`, `"workers": "four"`},
		"summary":   {"summary", []byte(summary), `"round_trips":`, `"round_trips": true, "old":`},
		"a service": {"summary", []byte(visited), `"workers":`, `"workers": true, "old":`},
	} {
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(printed(t, "schema", c.schema)), &s); err != nil {
			t.Fatal(err)
		}
		fits, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		validate := func(text string) error {
			var document any
			if err := json.Unmarshal([]byte(text), &document); err != nil {
				t.Fatal(err)
			}
			return fits.Validate(document)
		}
		if err := validate(string(c.text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := validate(strings.Replace(string(c.text), "{", `{"added": 1,`, 1)); err != nil {
			t.Errorf("%s, with a field that was added: %v", name, err)
		}
		if validate(strings.Replace(string(c.text), c.field, c.fake, 1)) == nil {
			t.Errorf("%s fits with %s", name, c.fake)
		}
	}
}

// printed runs bench and returns what it prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := cli.Bench(t.Context(), cli.Env{Args: args, Stdout: &stdout, Stderr: &stderr}); code != cli.Passed &&
		code != cli.Violation && code != cli.Inconclusive {
		t.Fatalf("%v: exit code %d\n%s", args, code, stderr.String())
	}
	return stdout.String()
}
