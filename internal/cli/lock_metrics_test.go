package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/live"
	"hammerlock/internal/measure"
	"hammerlock/internal/testbed"
	"hammerlock/internal/witness"
	"hammerlock/topologies"
)

var lockSeries = regexp.MustCompile(`(?m)^(hammerlock_(?:lock|tap)_\w+)(?:\{(.*)\})? (\S+)$`)

// served returns the names of the lock metrics in an answer, each with its labels.
func served(text string) map[string][]string {
	all := map[string][]string{}
	for _, found := range lockSeries.FindAllStringSubmatch(text, -1) {
		name := found[1]
		all[name] = append(all[name], "")
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(found[2], -1) {
			all[name] = append(all[name], label[1])
		}
	}
	return all
}

// fetch reads what an address serves.
func fetch(address string) string {
	answer, err := http.Get(address)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// queries returns the expressions of the dashboard and of the rules, each with the text that names its labels.
func queries(t *testing.T) (all [][2]string) {
	t.Helper()
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ RefID, Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	read := func(name string, parse func([]byte) error) {
		text, err := os.ReadFile(filepath.Join("../../deploy", name))
		if err == nil {
			err = parse(text)
		}
		if err != nil {
			t.Fatal(name, err)
		}
	}
	read("grafana-locks.json", func(text []byte) error { return json.Unmarshal(text, &board) })
	for i, p := range board.Panels {
		if p.ID != i+1 || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %+v", p)
		}
		for _, q := range p.Targets {
			all = append(all, [2]string{q.Expr, q.LegendFormat})
		}
	}
	for _, v := range board.Templating.List[1:] {
		all = append(all, [2]string{v.Query, ""})
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr         string
				For                 time.Duration
				Labels, Annotations map[string]string
			}
		}
	}
	read("alerts.yml", func(text []byte) error {
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		return d.Decode(&rules)
	})
	for _, r := range rules.Groups[0].Rules {
		if r.Alert == "" || r.Labels["severity"] == "" {
			t.Errorf("rule %+v", r)
		}
		grown := regexp.MustCompile(`^increase\((\w+)\[5m\]\)`).FindStringSubmatch(r.Expr)
		if grown != nil && !strings.Contains(r.Expr, fmt.Sprintf("(%[1]s > 0 unless %[1]s offset 5m)", grown[1])) {
			t.Errorf("rule %s misses a counter that begins above 0", r.Alert)
		}
		all = append(all, [2]string{r.Expr, strings.ReplaceAll(r.Annotations["summary"], "$labels.", "")})
	}
	return all
}

// TestLiveLockMetrics: the dashboard and the alert rules in deploy use only metrics and labels that exist. A watch of
// a program with a wrong lock serves all of them. A watch that reads only a replication stream omits what it cannot
// know.
func TestLiveLockMetrics(t *testing.T) {
	t.Parallel()
	python := live.Python(t, "redis")
	a := testbed.Up(t, "single", topologies.Options{}).Sites[0].Access()
	done := filepath.Join(t.TempDir(), "done")
	at := regexp.MustCompile(`http://\S+/metrics`)
	watch := func(ctx context.Context, args ...string) (said *lockedBuffer, ended chan int) {
		said, ended = &lockedBuffer{}, make(chan int)
		go func() {
			ended <- Verify(ctx, Env{Args: slices.Concat([]string{"wire", "--addr",
				"redis://:" + a.Password + "@" + a.Addrs[0], "--locks", "lock:*", "--metrics", ":0", "--tui", "off",
				"--out", t.TempDir()}, args), Stdout: io.Discard, Stderr: said, Getenv: os.Getenv})
		}()
		return said, ended
	}
	ctx, stop := context.WithCancel(t.Context())
	alone, aloneEnded := watch(ctx, "--tap-only")
	said, ended := watch(t.Context(), "--", "sh", "-c",
		`"$1" testdata/wire/wrong.py plain-del 6 30; until [ -e "$2" ]; do sleep 0.05; done`, "sh", python, done)
	var text string
	live.Wait(t, "the metrics of violations", func() bool {
		text = fetch(at.FindString(said.String()))
		return regexp.MustCompile(`(?m)^hammerlock_lock_grants_total\{.*\} 180$`).MatchString(text) &&
			regexp.MustCompile(`(?m)^hammerlock_lock_violations_total\{cause="foreign-release".*\} [1-9]`).
				MatchString(text) &&
			regexp.MustCompile(`(?m)^hammerlock_lock_held\{.*\} 0$`).MatchString(text)
	})
	aloneText := fetch(at.FindString(alone.String()))
	stop()
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != Violation {
		t.Errorf("exit %d:\n%s", code, said.String())
	}
	<-aloneEnded
	askedFor(t, served(text))
	onlyKnown(t, text, aloneText)
	if up := `hammerlock_tap_up{server="` + a.Addrs[0] + `"} 1`; !strings.Contains(text, up) ||
		!strings.Contains(aloneText, up) {
		t.Errorf("%s is not served", up)
	}
}

// askedFor checks that the metrics that are served have all names and labels for which the dashboard and the rules ask.
func askedFor(t *testing.T, names map[string][]string) {
	t.Helper()
	for _, q := range queries(t) {
		for _, name := range regexp.MustCompile(`hammerlock_\w+`).FindAllString(q[0], -1) {
			if len(names[name]) == 0 {
				t.Errorf("%s: %s is not served", q[0], name)
			}
			for _, label := range regexp.MustCompile(`\{\{ *(\w+) *\}\}`).FindAllStringSubmatch(q[1], -1) {
				if !slices.Contains(names[name], label[1]) {
					t.Errorf("%s: %s has no label %s", q[0], name, label[1])
				}
			}
		}
	}
}

// onlyKnown checks that a tap alone serves no metric that it cannot know, and that a proxy serves them.
func onlyKnown(t *testing.T, text, aloneText string) {
	t.Helper()
	names, tapped := served(text), served(aloneText)
	for _, name := range strings.Fields("waiters waiters_max longest_wait_seconds refusals_total " +
		"hot_refusals hot_waiters late_releases_total foreign_releases_total wait_seconds_count " +
		"wait_quantile_seconds hand_off_seconds_count") {
		if name = "hammerlock_lock_" + name; len(names[name]) == 0 || len(tapped[name]) > 0 {
			t.Errorf("%s is served: %t, by a tap alone: %t", name, len(names[name]) > 0, len(tapped[name]) > 0)
		}
	}
	for _, name := range []string{"hammerlock_waiting_workers{", "hammerlock_starving_workers{",
		"hammerlock_unserved_seconds{"} {
		if !strings.Contains(text, name) || strings.Contains(aloneText, name) {
			t.Errorf("%s is served: %t, by a tap alone: %t", name, strings.Contains(text, name),
				strings.Contains(aloneText, name))
		}
	}
	if len(tapped["hammerlock_lock_grants_total"]) == 0 ||
		slices.Contains(tapped["hammerlock_lock_grants_total"], "program") {
		t.Errorf("a tap alone serves %v", tapped)
	}
}

// TestLockMetricsOfAnyNames: keys and names of clients may contain any bytes, and a wait may have no end.
func TestLockMetricsOfAnyNames(t *testing.T) {
	l := measure.NewLocks(func(string) string { return "\xff*" }, false)
	var open []witness.Notice
	for i := range 40 {
		n := witness.Notice{Kind: witness.Waits, Key: "\xff1\"\n", Client: "shop\xfe", At: time.Second,
			For: time.Minute}
		l.Notice(n)
		open = append(open, n)
		if n.Kind = witness.Granted; i == 0 {
			l.Notice(n)
		}
	}
	m, err := serveMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.close(t.Context(), "") }()
	m.tell(harness.Event{Locks: func() (now measure.LockState) {
		now.Rows, now.Hot = l.Numbers(time.Minute, open)
		return now
	}})
	m.tell(harness.Event{Stage: harness.Judging}) // this event has no numbers of the locks
	text := fetch("http://" + m.address() + "/metrics")
	for _, want := range []string{`hammerlock_lock_waiters{pattern="\"\\xff*\"",program="\"shop\\xfe\""} 40`,
		`hammerlock_lock_longest_wait_seconds{pattern="\"\\xff*\"",program="\"shop\\xfe\""} 60`,
		`quantile="0.5"} +Inf`, `hammerlock_lock_violations_total{cause="overwritten",`, `"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("without %s:\n%s", want, text)
		}
	}
}
