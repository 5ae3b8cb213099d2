package check

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose reads a compose file as strictly as docker compose does.
func compose(t *testing.T, text string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: "..", ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
	}, func(o *loader.Options) { o.SetProjectName("hammerlock", true) })
}

// TestCompose reads the compose file, finds what is misspelt in it, and compares its parts with each other.
func TestCompose(t *testing.T) {
	b, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	p, err := compose(t, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"  image:", "    build:", "    command:", "    depends_on:", "    networks:",
		"    secrets:", "    volumes:", "    scale:", "\nvolumes:"} {
		if _, err := compose(t, strings.Replace(text, field, strings.Replace(field, ":", "x:", 1), 1)); err == nil {
			t.Errorf("%q, misspelt, is let pass", field)
		}
	}
	coordinator, agent := p.Services["coordinator"], p.Services["agent"]
	if n := slices.Index(coordinator.Command, "--agents"); n < 0 || coordinator.Command[n+1] != "3" ||
		agent.Scale == nil || *agent.Scale != 3 {
		t.Errorf("the coordinator waits with %q for %v agents", coordinator.Command, agent.Scale)
	}
	if !slices.Contains(agent.Command, "nats://coordinator:4222") ||
		!slices.Contains(coordinator.Command, "0.0.0.0:4222") {
		t.Errorf("%q, %q", agent.Command, coordinator.Command)
	}
	if coordinator.Image != agent.Image || len(p.Services) != 5 {
		t.Errorf("%s and %s in %v", coordinator.Image, agent.Image, p.ServiceNames())
	}
}
