package hammerlock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSetup runs .ci/setup on machines of which nothing is real but the shell: every tool writes down how it was
// called, and a package manager makes the programs that it installs appear.
func TestSetup(t *testing.T) {
	cases := map[string]struct {
		tools   string // what the machine has
		uid     string
		needs   string
		want    string // the calls that change something
		failure string
	}{
		"all there":          {tools: "apt-get redis-server gcc", needs: "redis cc"},
		"valkey will do":     {tools: "apt-get valkey-server", needs: "redis"},
		"Debian, root":       {tools: "apt-get", needs: "redis cc", want: "apt-get update; apt-get install -y --no-install-recommends redis-server gcc libc6-dev"},
		"Debian, only redis": {tools: "apt-get gcc", needs: "redis cc", want: "apt-get update; apt-get install -y --no-install-recommends redis-server"},
		"Debian, a person": {tools: "apt-get sudo", uid: "1000", needs: "redis",
			want: "sudo apt-get update; apt-get update; sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends redis-server; " +
				"apt-get install -y --no-install-recommends redis-server"},
		"nobody may":      {tools: "apt-get", uid: "1000", needs: "redis", failure: "needs root to run: apt-get update"},
		"Fedora":          {tools: "dnf", needs: "redis cc", want: "dnf install -y redis; dnf install -y gcc"},
		"Alpine":          {tools: "apk", needs: "redis cc", want: "apk add redis gcc musl-dev"},
		"macOS":           {tools: "brew gcc", uid: "501", needs: "redis cc", want: "brew install redis"},
		"no manager":      {needs: "redis", failure: "no apt-get, dnf, apk or brew here"},
		"installs nought": {tools: "apk broken", needs: "redis", want: "apk add redis", failure: "still missing: redis"},
		"a browser":       {tools: "apt-get redis-server", needs: "redis chromium", want: "apt-get update; apt-get install -y --no-install-recommends chromium fonts-dejavu-core"},
		"Chrome will do":  {tools: "apt-get google-chrome", needs: "chromium"},
		"Fedora, browser": {tools: "dnf", needs: "chromium", want: "dnf install -y chromium dejavu-sans-fonts"},
		"Alpine, browser": {tools: "apk", needs: "chromium", want: "apk add chromium font-dejavu"},
		"a balancer":      {tools: "apt-get redis-server", needs: "redis nginx", want: "apt-get update; apt-get install -y --no-install-recommends nginx-light"},
		"unknown need":    {needs: "disk", failure: "disk: there is redis, cc, chromium, nginx, tmux, node, python, php"},
		"Debian, PHP":     {tools: "apt-get", needs: "php", want: "apt-get update; apt-get install -y --no-install-recommends php-cli " + lockedPackages(t, "php")},
		"other release": {tools: "apt-get other-release", needs: "php", want: "apt-get update; apt-get install -y --no-install-recommends php-cli " + lockedPackages(t, "php") +
			"; apt-get install -y --no-install-recommends php-cli php-redis php-symfony-lock"},
		"Debian, beyond": {tools: "apt-get", needs: "postgres mariadb etcd",
			want: "apt-get update; apt-get install -y --no-install-recommends postgresql mariadb-server-core etcd-server"},
		"Debian, drivers": {tools: "apt-get python3", needs: "node python",
			want: "python3 -c import redis; apt-get update; apt-get install -y --no-install-recommends nodejs npm; python3 -c import redis"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			calls, out, err := runSetup(t, c.tools, c.uid, c.needs)
			if calls != c.want {
				t.Errorf("called %q, want %q", calls, c.want)
			}
			if (err != nil) != (c.failure != "") || !strings.Contains(out, c.failure) {
				t.Errorf("got %v and %q, want %q", err, out, c.failure)
			}
		})
	}
}

// fake is a tool: it notes its call; a package manager then provides what it was asked for.
const fake = `#!/bin/sh
me=${0##*/}
echo "$me $*" >> "$LOG"
case $me in
sudo) exec "$@" ;;
apt-get | dnf | apk | brew)
	[ ! -e "$BIN/broken" ] || exit 0
	case "$*" in *=*) [ ! -e "$BIN/other-release" ] || exit 100 ;; esac
	for p in "$@"; do
		case $p in redis | redis-server) : > "$BIN/redis-server"; chmod +x "$BIN/redis-server" ;; gcc | chromium | nodejs | npm) : > "$BIN/${p%js}"; chmod +x "$BIN/${p%js}" ;; nginx-light) : > "$BIN/nginx"; chmod +x "$BIN/nginx" ;; php-cli) : > "$BIN/php"; chmod +x "$BIN/php" ;;
		postgresql | mariadb-server-core | etcd-server) for p in postgres mariadbd etcd; do : > "$BIN/$p"; chmod +x "$BIN/$p"; done ;; esac
	done ;;
esac
`

// lockedPackages are those that a lock file of Debian packages names.
func lockedPackages(t *testing.T, driver string) string {
	t.Helper()
	_, lines, _ := strings.Cut(string(sourceOf(t, "drivers/"+driver+"/debian.lock")), "\n")
	return strings.Join(strings.Fields(lines), " ")
}

func runSetup(t *testing.T, tools, uid, needs string) (calls, out string, err error) {
	t.Helper()
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	if uid == "" {
		uid = "0"
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq(tools) {
		write(name, fake)
	}
	write("id", "#!/bin/sh\necho "+uid+"\n")
	write("go", "#!/bin/sh\necho gcc\n")
	for _, name := range []string{"sh", "sed", "tr", "cut", "env", "chmod"} {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "sh"), append([]string{".ci/setup"}, strings.Fields(needs)...)...)
	cmd.Env = []string{"PATH=" + bin, "BIN=" + bin, "SBIN=" + bin, "LOG=" + log}
	said, err := cmd.CombinedOutput()
	noted, _ := os.ReadFile(log) // absent if nothing was called
	return strings.ReplaceAll(strings.TrimSpace(string(noted)), "\n", "; "), string(said), err
}
