package drivers_test

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hammerlock/internal/live"
)

var update = flag.Bool("update", false, "write the lock files of Debian packages again, with what this machine has")

// debianLocks are the lock files of drivers whose libraries are packages of the system.
var debianLocks = []string{"python/debian.lock", "php/debian.lock"}

// TestPackagesAreThoseOfTheLockFiles compares the installed packages with those in the lock files, with which the
// drivers were tested. Other releases of Debian have other packages, so the test is skipped there. On Debian 12 a
// difference is an error in CI, because "make drivers" installs the packages in the files.
func TestPackagesAreThoseOfTheLockFiles(t *testing.T) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !strings.Contains(string(release), "VERSION_CODENAME=bookworm") {
		t.Skip("the files are about Debian 12, and this is another system")
	}
	for _, file := range debianLocks {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			has := map[string]string{} // version by name
			out, err := exec.Command("dpkg-query", "-W", "-f", "${Package}=${Version}\n").Output()
			live.Need(t, err == nil, "a list of Debian packages")
			for line := range strings.Lines(string(out)) {
				name, version, _ := strings.Cut(strings.TrimSpace(line), "=")
				has[name] = version
			}
			if *update {
				text = packageLine.ReplaceAllFunc(text, func(line []byte) []byte {
					name, _, _ := strings.Cut(string(line), "=")
					return []byte(name + "=" + has[name])
				})
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			differ := differences(string(text), has)
			live.Need(t, len(differ) == 0, "what "+file+" names ("+strings.Join(differ, "; ")+"; -update "+
				"writes the file again)")
		})
	}
}

var packageLine = regexp.MustCompile(`(?m)^[a-z0-9.+-]+=.*$`)

// differences are the packages of a lock file of which a machine has another version, or none.
func differences(lock string, has map[string]string) (differ []string) {
	for _, line := range packageLine.FindAllString(lock, -1) {
		name, version, _ := strings.Cut(line, "=")
		switch got := has[name]; got {
		case version:
		case "":
			differ = append(differ, name+" "+version+" is missing")
		default:
			differ = append(differ, name+" is "+got+", not "+version)
		}
	}
	return differ
}

func TestWhatDiffersFromALockFile(t *testing.T) {
	got := differences("# a list=of packages\na=1\nb=2+c~d1\nc=3", map[string]string{"a": "1", "b": "2"})
	if want := []string{"b is 2, not 2+c~d1", "c 3 is missing"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
