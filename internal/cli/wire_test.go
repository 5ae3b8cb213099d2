package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// wireProgram is an environment variable. If it is set, this test binary acts as a program with a lock, whose name is
// the value. wireCounts has the path of the file for the program's own counts.
const (
	wireProgram = "HAMMERLOCK_TEST_WIRE"
	wireCounts  = "HAMMERLOCK_TEST_COUNTS"
)

// TestLiveWireProgram is no test, but the program that TestLiveWire watches.
func TestLiveWireProgram(t *testing.T) {
	how := os.Getenv(wireProgram)
	if how == "" {
		t.Skip("it is started by TestLiveWire")
	}
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		t.Fatal(err)
	}
	if how == "service" {
		serveViews(t, options)
		return
	}
	var granted, released atomic.Int64
	var all sync.WaitGroup
	for n := range 4 {
		own := *options
		own.PoolSize = 1
		c := redis.NewClient(&own)
		visit := func(i int) { visitPage(t, c, (n+4*i)%13 == 6 && how == "plain-del") }
		all.Go(func() {
			defer func() { _ = c.Close() }()
			for i := range 20 {
				if how == "redsync" {
					m := redsync.New(goredis.NewPool(c)).NewMutex("lock:page", redsync.WithExpiry(2*time.Second),
						redsync.WithTries(10000),
						redsync.WithRetryDelay(2*time.Millisecond))
					if err := m.Lock(); err != nil {
						t.Error(err)
						return
					}
					granted.Add(1)
					visit(i)
					if ok, err := m.Unlock(); ok && err == nil {
						released.Add(1)
					}
					continue
				}
				for !c.SetNX(t.Context(), "lock:page", fmt.Sprint(n, i), 200*time.Millisecond).Val() {
					<-time.After(2 * time.Millisecond)
				}
				granted.Add(1)
				visit(i)
				released.Add(c.Del(t.Context(), "lock:page").Val())
			}
		})
	}
	all.Wait()
	if err := os.WriteFile(os.Getenv(wireCounts),
		fmt.Appendf(nil, "%d grants · %d releases", granted.Load(), released.Load()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveViews is a service that counts page views under a wrong lock: its release deletes the lock even if another
// client holds it. It uses one connection for each request, and runs until it is killed.
func serveViews(t *testing.T, options *redis.Options) {
	c := redis.NewClient(options)
	var visits atomic.Int64
	http.HandleFunc("GET /views", func(w http.ResponseWriter, r *http.Request) {
		n, _ := c.Get(r.Context(), "views:page").Int()
		_, _ = fmt.Fprint(w, n)
	})
	http.HandleFunc("POST /views", func(http.ResponseWriter, *http.Request) {
		n, c := visits.Add(1), redis.NewClient(options)
		defer func() { _ = c.Close() }()
		for !c.SetNX(t.Context(), "lock:page", fmt.Sprint("visit", n), 100*time.Millisecond).Val() {
			<-time.After(2 * time.Millisecond)
		}
		visitPage(t, c, n%20 == 10)
		c.Del(t.Context(), "lock:page")
	})
	t.Log(http.ListenAndServe(os.Getenv("SERVE_AT"), nil))
}

// visitPage adds one to a number. A late holder takes longer than its lease.
func visitPage(t *testing.T, c *redis.Client, late bool) {
	views, err := c.Get(t.Context(), "views:page").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Error(err)
	}
	stay := time.Millisecond
	if late {
		stay = 260 * time.Millisecond
	}
	<-time.After(stay)
	if err := c.Set(t.Context(), "views:page", views+1, 0).Err(); err != nil {
		t.Error(err)
	}
}

// wired runs wire on a program. It returns the exit code and the run.
func wired(t *testing.T, how string, args ...string) (int, *results.Run, string) {
	t.Helper()
	dir := t.TempDir()
	counts := filepath.Join(dir, "counts")
	var stdout, stderr bytes.Buffer
	if !slices.Contains(args, "--topology") {
		args = append([]string{"--topology", "single"}, args...)
	}
	if !slices.Contains(args, "--locks") {
		args = append([]string{"--locks", "lock:*"}, args...)
	}
	all := slices.Concat([]string{"wire", "--data", "views:*", "--out",
		filepath.Join(dir, "runs"), "--json", "-q",
		"--env", wireProgram + "=" + how, "--env", wireCounts + "=" + counts}, args)
	code := Verify(context.WithoutCancel(t.Context()),
		Env{Args: all, Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	var d Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) != 1 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout.String(), stderr.String())
	}
	text, _ := os.ReadFile(counts)
	var again bytes.Buffer
	if same := Verify(t.Context(), Env{Args: []string{"check", filepath.Join(dir, "runs", d.Runs[0].Name), "--json"},
		Stdout: &again, Stderr: &stderr}); same != code {
		t.Errorf("check of the saved history exits %d, the run %d:\n%s", same, code, again.String())
	}
	return code, &d.Runs[0], string(text)
}

func causeOf(r *results.Run, name string) string {
	for _, v := range r.Verdicts {
		if v.Checker == name {
			return v.Status.String() + " " + v.Cause
		}
	}
	return ""
}

// TestLiveWire: the watch sees every grant and release that the unchanged program counts, and no others. It finds no
// fault with a right lock. It finds the fault of a lock that deletes the locks of other clients.
func TestLiveWire(t *testing.T) {
	t.Parallel()
	program := []string{"--", os.Args[0], "-test.run", "^TestLiveWireProgram$"}
	for _, tap := range []string{"auto", "off"} {
		code, r, counted := wired(t, "redsync", append([]string{"--tap", tap}, program...)...)
		if status, text := r.Safety(); code == Violation || status == checker.Fail {
			t.Errorf("tap %s: redsync: exit %d: %s", tap, code, text)
		}
		if counted == "" || !strings.Contains(r.Wire, counted) {
			t.Errorf("tap %s: the program counted %q, seen were %s", tap, counted, r.Wire)
		}
	}
	code, r, counted := wired(t, "plain-del", program...)
	if got := causeOf(r, "exclusion"); code != Violation || got != "fail foreign-release" {
		t.Errorf("plain-del: exit %d, exclusion: %s", code, got)
	}
	if !strings.Contains(r.Wire, counted) {
		t.Errorf("plain-del: the program counted %q, seen were %s", counted, r.Wire)
	}
	code, r, _ = wired(t, "redsync", append([]string{"--locks", "mutex:*", "--duration", "2s"}, program...)...)
	if code != Inconclusive || !slices.ContainsFunc(r.Seen, func(f results.Fact) bool {
		return strings.HasPrefix(f.Text, `no lock: no key matches --locks mutex:*; the first keys were "lock:`)
	}) {
		t.Errorf("wrong patterns: exit %d, seen: %v", code, r.Seen)
	}
}

// TestLiveWireOfOtherLanguages: for a Python program, the watch reports each wrong lock with its cause, and passes
// the right lock.
func TestLiveWireOfOtherLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	python := live.Python(t, "redis")
	for _, c := range []struct {
		how, fault, cause string // cause of the check that fails first
	}{
		{"right", "", ""},
		{"plain-del", "", "exclusion: fail foreign-release"},
		{"no-token", "", "exclusion: fail foreign-release"},
		{"renew-set", "", "lease-validity: fail silent-reacquire"},
		{"get-del", "delay:400ms@read/15", "exclusion: fail foreign-release"},
		{"retry", "drop-reply@granted/10", "exclusion: fail phantom"},
		{"setnx", "kill-program@granted:5", "liveness: fail deadlock"},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			args := []string{"--", python, "testdata/wire/wrong.py", c.how, "6", "30"}
			if c.fault != "" {
				args = append([]string{"--fault", c.fault}, args...)
			}
			live.Again(t, func(int) (undecided string) { // a mistake shows only if some worker is late
				code, r, _ := wired(t, "", args...)
				check, want, _ := strings.Cut(c.cause, ": ")
				status, text := r.Safety()
				switch {
				case c.cause == "" && code == Violation:
					t.Errorf("accused: %v %s", status, text)
				case c.cause != "" && code != Violation:
					return fmt.Sprintf("exit %d, want %s: %v %s", code, c.cause, status, text)
				case c.cause != "" && causeOf(r, check) == "fail overrun":
					return "a holder was late: " + text
				case c.cause != "" && causeOf(r, check) != want:
					t.Errorf("%s: %s; want %s: %v %s", check, causeOf(r, check), c.cause, status, text)
				}
				return ""
			})
		})
	}
}

// TestLiveWiredService: the count shows that a service loses page views, and the wire shows why.
func TestLiveWiredService(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	serve := fmt.Sprintf("%s=service SERVE_AT=%s exec %s -test.run '^TestLiveWireProgram$'",
		wireProgram, at, os.Args[0])
	var stdout, stderr bytes.Buffer
	code := Verify(t.Context(),
		Env{Args: []string{"http", "--serve", serve, "--visit", "POST http://" + at + "/views", "--count",
			"GET http://" + at + "/views", "--silent",
			"--burst", "60", "--wire", "single", "--locks", "lock:*", "--data", "views:*", "--out", t.TempDir(),
			"--json", "-q"}, Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	var d Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) != 2 || code != Violation {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout.String(), stderr.String())
	}
	// A late holder does two wrong things: it stores while another client holds the lock, and it deletes that
	// client's lock. Which of them is reported first depends on timing.
	if got := causeOf(&d.Runs[1], "exclusion"); d.Runs[0].Views.Lost == 0 || got != "fail foreign-release" &&
		got != "fail overrun" {
		t.Errorf("%d page views lost; on the wire: %s", d.Runs[0].Views.Lost, got)
	}
}

// TestLiveWireScenarios: redis-py's lock survives each scenario. By day, two scenarios stand for all.
func TestLiveWireScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	t.Parallel()
	python := live.Python(t, "redis")
	some, number := "crash,forgetful", 2
	if live.Nightly() {
		some, number = "all", len(scenarios.Programs())
	}
	var stdout, stderr bytes.Buffer
	code := Verify(t.Context(),
		Env{Args: []string{"wire", "--topology", "single", "--locks", "lock:*", "--scenario", some, "--out",
			t.TempDir(), "--json", "-q",
			"--", python, "testdata/wire/deployed.py", "crowd", "6", "4"}, Stdout: &stdout, Stderr: &stderr,
			Getenv: os.Getenv})
	var d Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) != number || code == Violation {
		t.Errorf("exit %d, %v, %d runs\n%s%s", code, err, len(d.Runs), stdout.String(), stderr.String())
	}
	for i := range d.Runs {
		if len(d.Runs[i].Faults) == 0 {
			t.Errorf("%s: nothing was injected", d.Runs[i].Scenario)
		}
	}
}

// TestLiveWireOfDeployments watches the lock of redis-py behind sentinels and in a cluster, while the primary is
// killed. All grants and releases that the program counted are seen, and the lock is not blamed. If the failover
// loses a grant, the verdict blames the service.
func TestLiveWireOfDeployments(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	t.Parallel()
	python := live.Python(t, "redis")
	kinds := []string{"sentinel"}
	if live.Nightly() {
		kinds = append(kinds, "cluster")
	}
	for _, topology := range kinds {
		run := func(fault string, args ...string) (int, *results.Run) {
			all := slices.Concat([]string{
				"--topology", topology, "--fault", fault, "--", python, "testdata/wire/deployed.py",
			}, args)
			code, r, _ := wired(t, "", all...)
			return code, r
		}
		code, r := run("kill-primary:3s@granted:30", "crowd", "6", "8")
		if cause := causeOf(r, "exclusion"); code == Violation && cause != "fail service-loss" {
			t.Errorf("%s: a killed primary: exit %d: %s", topology, code, cause)
		}
		// the failover determines whether the other worker is granted the lock in time
		live.Again(t, func(int) string {
			code, r := run("lost-grant@released", "two", "2", "6")
			if cause := causeOf(r, "exclusion"); code != Violation || cause != "fail service-loss" {
				return fmt.Sprintf("%s: a lost grant: exit %d: %s", topology, code, cause)
			}
			return ""
		})
	}
}

// TestWireMistakes: all mistakes are reported together, and nothing is started.
func TestWireMistakes(t *testing.T) {
	for args, want := range map[string][]string{
		"wire":                               {"--addr names the server", "--locks is missing"},
		"wire --to h --topology single -- x": {"give one of them", "--locks is missing"},
		"wire --to h --topology singel -- x": {"give one of them", "--locks is missing", `--topology "singel"`},
		"wire --to h --locks l --fault break@granted --holder me": {"--fault break@granted",
			"kill-primary", `--holder "me": auto, token`},
		"wire --addr h --locks l --fault cut@lunch": {
			"granted, refused, extended, released, read",
		},
		"wire --to h --locks l --fault pause-program@granted":                               {"there is no command"},
		"wire --to h --locks l --fault kill-primary@granted":                                {"only where it is ours"},
		"wire --topology single --locks l --fault lost-grant@granted --scenario crash -- x": {"needs", "no --fault"},
		"wire --to h --locks l --fault refuse@granted --scenario sleep -- x": {"refuse:OOM@granted",
			"crash", "late-commands"},
		"wire --to h --locks l --tap-only -- x": {"leave out the command"},
		"wire --to ftp://h --locks l":           {"--addr ftp://...: an address is HOST:PORT"},
		"http --wire single --env X --visit":    {"--wire: --locks is missing", "NAME=TEXT", "give --serve"},
		"http --locks l":                        {"give --wire"},
		"wire --to h --locks l --env X":         {"NAME=TEXT"},
	} {
		var stdout, stderr bytes.Buffer
		code := Verify(t.Context(), Env{Args: strings.Fields(args), Stdout: &stdout, Stderr: &stderr})
		for _, text := range want {
			if code != Usage || !strings.Contains(stderr.String(), text) {
				t.Errorf("%s: exit %d, without %q:\n%s", args, code, text, stderr.String())
			}
		}
	}
}

func TestLiveWireOfNoProgram(t *testing.T) {
	t.Parallel()
	wireServer(t)
	var stdout, stderr lockedBuffer
	code := Verify(t.Context(), Env{
		Args:   []string{"wire", "--topology", "single", "--locks", "l", "--out", t.TempDir(), "--", "no-such-program"},
		Stdout: &stdout, Stderr: &stderr,
	})
	if text := stderr.String(); code != Broken || !strings.Contains(text, "exit status 127") ||
		!strings.Contains(text, "had sent no command") {
		t.Errorf("exit %d:\n%s", code, text)
	}
}

// TestLiveWireAsksForAPassword: the error names each server that needs a password, and the flag to give. The program
// to watch is not started.
func TestLiveWireAsksForAPassword(t *testing.T) {
	t.Parallel()
	top := testbed.Up(t, "redlock", topologies.Options{})
	started := filepath.Join(t.TempDir(), "started")
	tell := func(password string) string {
		var stdout, stderr bytes.Buffer
		args := []string{"wire", "--locks", "lock:*", "--out", t.TempDir()}
		for _, s := range top.Sites[:2] {
			args = append(args, "--to", "redis://"+password+s.Addrs()[0])
		}
		code := Verify(t.Context(), Env{Args: append(args, "--", "touch", started), Stdout: &stdout, Stderr: &stderr,
			Getenv: func(string) string { return "" }})
		if _, err := os.Stat(started); code != Broken || err == nil {
			t.Errorf("exit %d, the command was started: %t", code, err == nil)
		}
		return stderr.String()
	}
	for password, want := range map[string]string{
		"": "asks for a password, and none is given", ":wrong@": "refused the user or the password",
	} {
		text := tell(password)
		for _, s := range top.Sites[:2] {
			if !strings.Contains(text, s.Addrs()[0]+" "+want) {
				t.Errorf("%s is not said of %s:\n%s", want, s.Addrs()[0], text)
			}
		}
		if strings.Contains(text, "wrong@") {
			t.Errorf("the password is shown:\n%s", text)
		}
	}
}

// TestLiveWireOfDeploymentsOfOthers: a sentinel is refused. For a cluster's node, the warning names the limits.
func TestLiveWireOfDeploymentsOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two deployments")
	}
	t.Parallel()
	tell := func(kind string, at func(*topologies.Site) (addr, password string), code int, want string) {
		addr, password := at(testbed.Up(t, kind, topologies.Options{}).Sites[0])
		var stdout, stderr bytes.Buffer
		args := []string{"wire", "--to", "redis://:" + password + "@" + addr, "--locks", "lock:*", "--tap", "off",
			"--out", t.TempDir(), "--tui", "off", "--", "true"}
		got := Verify(t.Context(), Env{Args: args, Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string {
			return ""
		}})
		text := stderr.String()
		if got != code || !strings.Contains(text, addr+want) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s%s", kind, got, code, want, stdout.String(), text)
		}
		if strings.Contains(text, addr+" is at 127.0.0.1:0\n") {
			t.Errorf("it is not said where clients find the proxy:\n%s", text)
		}
	}
	tell("sentinel", func(s *topologies.Site) (string, string) {
		_, password := s.SentinelLogin()
		return s.Addrs()[0], password
	}, Broken, " is a sentinel")
	tell("cluster", func(s *topologies.Site) (string, string) {
		return s.Addrs()[0], s.Access().Password
	}, Inconclusive, ": it is a node of a cluster")
}

// TestLiveTapOnly: from a replication stream alone, the watch immediately reports a lock without an expiry, and a
// lock that was overwritten. It does not report a right lock.
func TestLiveTapOnly(t *testing.T) {
	t.Parallel()
	top, err := topologies.All[0].Up(t.Context(), topologies.Options{Server: wireServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = top.Close() }()
	a := top.Sites[0].Access()
	c := top.Sites[0].Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	var stdout, stderr lockedBuffer
	out := t.TempDir()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- Verify(ctx,
			Env{Args: []string{"wire", "--to", "redis://:" + a.Password + "@" + a.Addrs[0], "--locks", "lock:*",
				"--tap-only", "--duration", "1m", "--out", out},
				Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	}()
	live.Wait(t, "the tap", func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "connected_slaves:1")
	})
	wrong := func() {
		c.Set(t.Context(), "lock:stolen", "one", time.Minute)
		c.Set(t.Context(), "lock:stolen", "two", time.Minute)
		c.SetNX(t.Context(), "lock:endless", "one", 0)
		c.SetNX(t.Context(), "lock:right", "one", time.Minute)
		c.Del(t.Context(), "lock:right")
	}
	wrong()
	live.Wait(t, "both violations", func() bool {
		text := stdout.String()
		if !strings.Contains(text, "lock:stolen") {
			wrong() // the stream may have begun after it
		}
		return strings.Contains(text, `lock:stolen: "two" took the place of "one"`) &&
			strings.Contains(text, "lock:endless: is held without an end")
	})
	end()
	if code := <-ended; code != Violation || strings.Contains(stdout.String(), "Z lock:right") ||
		!strings.Contains(stdout.String(), "violations\n") {
		t.Errorf("exit %d:\n%s%s", code, stdout.String(), stderr.String())
	}
	var again bytes.Buffer
	code := Verify(t.Context(), Env{Args: []string{"check", "latest", "--out", out, "--json"}, Stdout: &again,
		Stderr: &stderr})
	if code != Violation || !strings.Contains(again.String(), `"exclusion"`) {
		t.Errorf("the saved history exits %d:\n%s%s", code, again.String(), stderr.String())
	}
}

func wireServer(t *testing.T) topologies.Server {
	t.Helper()
	server, err := topologies.FindServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
