package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

const secret = "s3cret-of-app"

// others starts a deployment that the suite under test does not own.
func others(t *testing.T, kind string) *topologies.Topology {
	t.Helper()
	return testbed.Up(t, kind, topologies.Options{})
}

// user creates a user with access to the prefix only, changed by further rules.
func user(t *testing.T, n *topologies.Node, more ...any) {
	t.Helper()
	testbed.Command(t, n,
		append([]any{"ACL", "SETUSER", "app", "reset", "on", ">" + secret, "~app:*", "&app:*", "+@all", "-@admin",
			"-@dangerous"}, more...)...)
}

// flags parses a command line as a command does.
func flags(addrs ...string) Flags {
	clean, s := Take(addrs, nil)
	return Flags{Addrs: clean, Secrets: s, Prefix: "app:"}
}

// up attaches to a deployment.
func up(t *testing.T, kind string, f Flags) (*topologies.Topology, error) {
	t.Helper()
	spec, _ := topologies.Find(kind)
	a, mistakes := f.Resolve(kind == "sentinel")
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return a.Of(spec).Up(t.Context(), topologies.Options{})
}

// attached attaches to a deployment and closes it at the end.
func attached(t *testing.T, kind string, f Flags) *topologies.Topology {
	t.Helper()
	top, err := up(t, kind, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := top.Close(); err != nil {
			t.Error(err)
		}
	})
	return top
}

// TestEveryLockStaysWithinThePrefix tries all locks and stores as a user with access to the prefix only.
func TestEveryLockStaysWithinThePrefix(t *testing.T) {
	t.Parallel()
	theirs := others(t, "single")
	n := theirs.Nodes[0]
	user(t, n)
	f := flags("redis://app:" + secret + "@" + n.Addr())
	top := attached(t, "single", f)
	l := Load{Extends: true, Verify: true}
	for _, spec := range known.Locks {
		if spec.Runs(top.Options.Server) == nil {
			l.Locks = append(l.Locks, spec)
		}
	}
	for _, name := range []string{"topology", "topology-fenced"} {
		l.Counter, _ = workload.FindCounter(name)
		lines, err := Preflight(t.Context(), top, l)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, "not measured: commands and CPU time of the "+
			"servers (others may use them, too); roles, restarts and replication lag (INFO: NOPERM") ||
			strings.Contains(text, secret) {
			t.Errorf("the preflight says:\n%s", text)
		}
		l.Locks = nil
	}
	if err := top.Close(); err != nil {
		t.Fatal(err)
	}
	if left := testbed.Command(t, n, "KEYS", "*").([]any); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPreflightNamesWhatIsRefused denies the user one command at a time.
func TestPreflightNamesWhatIsRefused(t *testing.T) {
	t.Parallel()
	n := others(t, "single").Nodes[0]
	lease, _ := known.Find("lease")
	fair, _ := known.Find("fair")
	store, _ := workload.FindCounter("topology")
	for name, test := range map[string]struct {
		rules []any
		load  Load
		want  string
	}{
		"scripts":       {[]any{"-evalsha", "-eval"}, Load{Locks: []locks.Spec{lease}}, "lock lease: release: NOPERM"},
		"subscriptions": {[]any{"-subscribe"}, Load{Locks: []locks.Spec{fair}}, "lock fair: wait: NOPERM"},
		"channels":      {[]any{"resetchannels"}, Load{Locks: []locks.Spec{fair}}, "lock fair: wait: NOPERM"},
		"reading":       {[]any{"-get"}, Load{Counter: store}, "counter topology: NOPERM"},
		"types":         {[]any{"-type"}, Load{Verify: true}, "look for keys of locks on n1: NOPERM"},
	} {
		user(t, n, test.rules...)
		top := attached(t, "single", flags("redis://app:"+secret+"@"+n.Addr()))
		if _, err := Preflight(t.Context(), top, test.load); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	user(t, n, "-hset")
	if top, err := up(t, "single", flags("redis://app:"+secret+"@"+n.Addr())); err == nil ||
		!strings.Contains(err.Error(), "register the prefix") {
		t.Errorf("without HSET: got %v", errors.Join(err, top.Close()))
	}
}

// TestRenamedCommandsAreNamed attaches to database 3 of a server with renamed script commands. Only a configuration
// file can rename them.
func TestRenamedCommandsAreNamed(t *testing.T) {
	t.Parallel()
	server, err := topologies.FindServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().(*net.TCPAddr)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "redis.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\nsave \"\"\nrename-command EVAL \"\"\n"+
		"rename-command EVALSHA theirs\n", addr.Port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(server.Path, file)
	cmd.Dir = filepath.Dir(file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	live.Wait(t, "the server", func() bool {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	top := attached(t, "single", flags(addr.String()+"/3"))
	if used := fmt.Sprint(testbed.Command(t, top.Nodes[0], "INFO", "keyspace")); !strings.Contains(used, "db3:") ||
		strings.Contains(used, "db0:") {
		t.Errorf("keys are not in database 3: %s", used)
	}
	lease, _ := known.Find("lease")
	const want = "the servers have no such command, or have it under another name"
	if _, err := Preflight(t.Context(), top, Load{Locks: []locks.Spec{lease}}); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestAServerByTwoNames: two addresses of one server are not two sites.
func TestAServerByTwoNames(t *testing.T) {
	t.Parallel()
	n := others(t, "single").Nodes[0]
	user(t, n, "+info")
	alias := n.Addr()[:strings.LastIndex(n.Addr(), ":")]
	names := []string{"redis://app:" + secret + "@" + n.Addr()}
	for _, other := range []string{"[::ffff:" + alias + "]", "[0::ffff:" + alias + "]"} {
		names = append(names, "redis://app:"+secret+"@"+other+n.Addr()[len(alias):])
	}
	for _, kind := range []string{"redlock", "replica"} {
		_, err := up(t, kind, flags(names...))
		if err == nil || !strings.Contains(err.Error(), "are the same server (run_id ") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// TestWrongAddressesAreNamed attaches to addresses where no server or another kind of server is.
func TestWrongAddressesAreNamed(t *testing.T) {
	t.Parallel()
	n := others(t, "single").Nodes[0]
	user(t, n)
	private := httptest.NewTLSServer(nil)
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(private.Close)
	for name, test := range map[string]struct {
		kind, addr, want string
	}{
		"nobody": {"single", "127.0.0.1:1", "127.0.0.1:1 cannot be reached from here"},
		"wrong password": {
			"single", "redis://app:wrong-" + secret + "@" + n.Addr(), "refused the user or the password",
		},
		"no password": {"single", n.Addr(), "asks for a password, and none is given"},
		"no cluster":  {"cluster", "redis://app:" + secret + "@" + n.Addr(), "runs in mode standalone"},
		"an authority of its own": {"single", "rediss://app:" + secret + "@" + private.Listener.Addr().String(),
			"--tls-ca FILE names an authority of your own"},
		"secured too much": {"single", "rediss://app:" + secret + "@" + n.Addr(), "TLS with " + n.Addr()},
	} {
		_, err := up(t, test.kind, flags(test.addr))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// TestASizeThatAServerAnnouncesIsNotBelieved attaches to a server that announces an answer of 2 GiB: no memory is
// allocated for it.
func TestASizeThatAServerAnnouncesIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"$2147483648\r\n", "*2147483648\r\n", "*1000000\r\n*1000000\r\n"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte(answer))
			}
		}()
		if _, err := up(t, "single", flags(listener.Addr().String())); err == nil ||
			!strings.Contains(err.Error(), "announces an answer that is too large") {
			t.Errorf("%q: got %v", answer, err)
		}
	}
}

// TestPasswordsLeaveTheArguments checks the command line without passwords, and the passwords that were found.
func TestPasswordsLeaveTheArguments(t *testing.T) {
	for arg, want := range map[string]struct{ clean, user, password string }{
		"redis://app:s3cret@h:1":                       {"redis://app@h:1", "app", "s3cret"},
		"--addr=rediss://:s3cret@h:1/2":                {"--addr=rediss://h:1/2", "", "s3cret"},
		"addr=redis://app:s3cret@h:1,fault=kill@2s":    {"addr=redis://app@h:1,fault=kill@2s", "app", "s3cret"},
		"redis://app:s3%2Fcr%40et@h:1":                 {"redis://app@h:1", "app", "s3/cr@et"},
		"redis://app:s3/c,r?e#t@h:1":                   {"redis://app@h:1", "app", "s3/c,r?e#t"},
		"redis://app:s3@cret@h:1":                      {"redis://app@h:1", "app", "s3@cret"},
		"redis://app:s3cret@h:1,redis://app:b@other:2": {"redis://app@h:1,redis://app@other:2", "app", "s3cret"},
		"redis://app@h:1":                              {"redis://app@h:1", "app", ""},
		"kill-node:n1@2s":                              {"kill-node:n1@2s", "", ""},
	} {
		clean, s := Take([]string{arg}, nil)
		if clean[0] != want.clean {
			t.Errorf("%s: got %s, want %s", arg, clean[0], want.clean)
		}
		if got := s.found[want.user+"@h:1"]; got != want.password {
			t.Errorf("%s: got the password %q, want %q", arg, got, want.password)
		}
		original := strings.Clone(arg)
		if copied := Hide([]string{original}); copied[0] != arg || want.password != "" &&
			strings.Contains(original, "s3") {
			t.Errorf("%s: copied %s, left %s", arg, copied[0], original)
		}
	}
}

// TestSecretsAreNeverShown prints and encodes values that contain secrets.
func TestSecretsAreNeverShown(t *testing.T) {
	clean, s := Take([]string{"redis://app:" + secret + "@h:1"}, func(string) string { return secret })
	f := Flags{Addrs: clean, Secrets: s, Prefix: "app:"}
	a, mistakes := f.Resolve(false)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	for _, value := range []any{f, &f, a, *a} {
		text, err := json.Marshal(value)
		if err != nil && !strings.Contains(err.Error(), "func") {
			t.Error(err)
		}
		if all := fmt.Sprintf("%v %+v %#v %s", value, value, value, text); strings.Contains(all, secret) {
			t.Errorf("%T shows it: %s", value, all)
		}
	}
}

// TestAttachMistakesAreAllNamed makes several mistakes at once.
func TestAttachMistakesAreAllNamed(t *testing.T) {
	f := flags("redis://h:1?password="+secret, "rediss://h:2/x", "http://"+secret, "app:"+secret+"@h")
	f.Map, f.Allow, f.Prefix, f.Cert, f.PasswordFile = []string{"a=b"}, []string{"flushal"}, "a*", "none.pem", "none"
	_, mistakes := f.Resolve(true)
	text := mistakes.String()
	for _, want := range []string{
		"nothing may follow", "number of the database", "an address is HOST:PORT", "are mixed",
		"--master is missing", `--map "a=b"`,
		`--allow-destructive "flushal": there is client-kill`, `--prefix "a*"`,
		"--tls-cert and --tls-key belong together", "--password-file: open none",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("shows the secret:\n%s", text)
	}
}

// TestWhoseLoginWins gives logins in URL, file and environment at once.
func TestWhoseLoginWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{envUser: "eve", envPassword: "of-env", envSentinelPassword: "of-sentinels"}
	clean, s := Take([]string{"redis://uma:of-url@h:1", "redis://h:2"}, func(name string) string {
		return environment[name]
	})
	f := Flags{Addrs: clean, Secrets: s, Prefix: "app:", Master: "m"}
	login := topologies.NewLogin
	check := func(what string, got, want topologies.Login) {
		t.Helper()
		if got != want {
			t.Errorf("%s: wrong login", what)
		}
	}
	a, _ := f.Resolve(true)
	check("sentinel of the URL", a.Endpoints[0].Login, login("uma", "of-url"))
	check("data", a.Data, login("eve", "of-env"))
	f.Master = ""
	a, _ = f.Resolve(false)
	check("URL", a.Endpoints[0].Login, login("uma", "of-url"))
	check("environment", a.Endpoints[1].Login, login("eve", "of-env"))
	f.PasswordFile = file
	a, _ = f.Resolve(false)
	check("file", a.Endpoints[0].Login, login("uma", "of-file"))
}

// TestTheDocumentNamesWhatIsSent compares the lists in docs/ATTACH.md with those in the code.
func TestTheDocumentNamesWhatIsSent(t *testing.T) {
	text, err := os.ReadFile("../../docs/ATTACH.md")
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat(topologies.Harmless, topologies.DestructiveNames())
	for _, commands := range topologies.Destructive {
		names = append(names, commands...)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/ATTACH.md has no word of `%s`", name)
		}
	}
}
