package hammertest_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/explore"
	"hammerlock/hammertest"
	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
)

// TestWhatAnImportBrings lists the modules linked into a user's test program. Those of file counters, of other
// clients and of dashboards must not be among them.
func TestWhatAnImportBrings(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	slices.Sort(got)
	own := strings.TrimSuffix(reflect.TypeFor[scenarios.Scenario]().PkgPath(), "/scenarios")
	want := []string{
		"github.com/HdrHistogram/hdrhistogram-go", "github.com/aclements/go-moremath",
		"github.com/alicebob/miniredis/v2",
		"github.com/anishathalye/porcupine", "github.com/bsm/redislock", "github.com/cespare/xxhash/v2",
		"github.com/go-redsync/redsync/v4",
		"github.com/redis/go-redis/v9", "github.com/yuin/gopher-lua", "go.uber.org/atomic", "golang.org/x/mod",
		"golang.org/x/perf",
		"golang.org/x/sys", own,
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestARunIsLeftAmongTheArtifacts expects a run where the go command keeps artifacts.
func TestARunIsLeftAmongTheArtifacts(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.v", "-test.short", "-test.run=^TestPlayed$", "-test.artifacts",
		"-test.outputdir="+dir)
	cmd.Env = append(os.Environ(), played+"=processes")
	out, err := cmd.CombinedOutput()
	found := false
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, failed error) error {
		found = found || failed == nil && e.Name() == results.HistoryFile
		return failed
	})
	if !found || !strings.Contains(string(out), "TestPlayed/contention") {
		t.Errorf("%v, no history of the one scenario that -short leaves:\n%s", err, out)
	}
}

// TestTheHistoryOfACounterexampleStays: the path that a failed exploration prints exists after the test, with the
// report that "verify export --test" needs.
func TestTheHistoryOfACounterexampleStays(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlayed$")
	cmd.Env = append(os.Environ(), played+"=a violation", "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	path := regexp.MustCompile(`(?m)^ *history  (.+)$`).FindSubmatch(out)
	if err == nil || path == nil {
		t.Fatalf("%v, no path of a history:\n%s", err, out)
	}
	for _, file := range []string{string(path[1]), filepath.Join(filepath.Dir(string(path[1])), explore.ReportFile)} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}

// calls are the calls that TestPlayed makes in its own process, with the expected output.
var calls = map[string]struct {
	call func(*testing.T)
	fail bool
	want string
}{
	"no claims": {func(t *testing.T) {
		hammertest.Verify(t, open, hammertest.Config{})
	}, true, "history.Claims{Excludes: true, Expires: true, Owned: true}"},
	"no function": {func(t *testing.T) { hammertest.Explore(t, nil, config) }, true, "a function that opens it"},
	"nowhere": {func(t *testing.T) {
		hammertest.Verify(t, open, hammertest.Config{Claims: claims, Topology: "triple"})
	}, true, `"triple": there is single, replica, sentinel, cluster, redlock`},
	"no seed": {func(t *testing.T) {
		t.Setenv("HAMMERLOCK_SEED", "x")
		hammertest.Verify(t, open, config)
	}, true, `HAMMERLOCK_SEED: strconv.ParseUint: parsing "x"`},
	"no server": {func(t *testing.T) {
		t.Setenv("HAMMERLOCK_REDIS_SERVER", "/nowhere")
		hammertest.Verify(t, open, config)
	}, true, "/nowhere"},
	"no bounds": {func(t *testing.T) {
		hammertest.Explore(t, open, hammertest.Config{Claims: claims, Options: &explore.Options{}})
	}, true, "clients 0: 1 to 5"},
	"no time": {func(t *testing.T) {
		o := explore.Defaults
		o.Deviations, o.Budget = 4, 1e9
		hammertest.Explore(t, open, hammertest.Config{Claims: claims, Options: &o})
	}, false, "--- SKIP: TestPlayed"},
	"a violation": {func(t *testing.T) {
		hammertest.Explore(t, func(e locks.Env) (locks.Lock, error) {
			l, err := open(e)
			return generous{l}, err
		}, small())
	}, true, "history  "},
	"processes": {func(t *testing.T) {
		hammertest.Verify(t, open, only("two-processes"))
	}, false, "--- PASS: TestPlayed/two-processes"},
	"not for it": {func(t *testing.T) {
		hammertest.Verify(t, open, only("contention", "reentry"))
	}, false, "the lock does not claim that its holder can acquire again"},
	"two in one": {func(t *testing.T) {
		t.Run("first", func(t *testing.T) { hammertest.Explore(t, open, small()) })
		t.Run("second", func(t *testing.T) { hammertest.Explore(t, open, small()) })
	}, false, "--- PASS: TestPlayed/second"},
}

// generous is a lock that grants every request.
type generous struct{ locks.Lock }

func (generous) Acquire(_ context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return locks.Lease{Key: key, Token: "t", Until: time.Now().Add(ttl)}, nil
}

var config = hammertest.Config{Claims: claims}

// only is a configuration with these scenarios.
func only(names ...string) hammertest.Config {
	c := config
	for _, name := range names {
		s, _ := scenarios.Find(name)
		c.Scenarios = append(c.Scenarios, s)
	}
	return c
}

func small() hammertest.Config {
	o := explore.Defaults
	o.Deviations = 0
	return hammertest.Config{Claims: history.Claims{Excludes: true}, Options: &o}
}

// played is the variable with the call that TestPlayed makes.
const played = "HAMMERTEST_PLAYED"

func TestPlayed(t *testing.T) {
	c, ok := calls[os.Getenv(played)]
	if !ok {
		t.Skip("played by another test")
	}
	c.call(t)
}

func TestCalls(t *testing.T) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live.Again(t, func(int) string {
				cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestPlayed$")
				cmd.Env = append(os.Environ(), played+"="+name, "TMPDIR="+t.TempDir()) // for the files of failed runs
				out, err := cmd.CombinedOutput()
				if err != nil && !c.fail && strings.Contains(string(out), "INCONCLUSIVE") {
					return string(out)
				}
				if (err != nil) != c.fail || !strings.Contains(string(out), c.want) {
					t.Errorf("%v, want a failure: %v, and %q:\n%s", err, c.fail, c.want, out)
				}
				return ""
			})
		})
	}
}
