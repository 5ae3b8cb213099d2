package harness

import (
	"cmp"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"hammerlock/results"
)

// Version returns the version of the suite's module or, without one, the commit from which the suite was built.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value
		}
	}
	return cmp.Or(version, "(devel)")
}

// environment returns a description of this machine, which is part of each record.
var environment = sync.OnceValue(func() results.Environment {
	e := results.Environment{
		Suite: Version(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0),
		CPU: field("/proc/cpuinfo", "model name"),
	}
	if kb, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		e.Memory = kb * 1024
	}
	if out, err := exec.Command("uname", "-r").Output(); err == nil {
		e.Kernel = strings.TrimSpace(string(out))
	}
	return e
})

// field returns the value of a line "name: value" in a file. It is empty if the line or the file does not exist.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
