package topologies

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The shims are small C libraries that are preloaded into a server. The first changes the time that the server reads;
// the second records which parts of files were synced. They are compiled when needed, unless a prebuilt file is
// beside the suite's program.
const (
	clockShim = "clock"
	fsyncShim = "fsync"
)

//go:embed shim/*.c
var shimSources embed.FS

var errNoCompiler = errors.New("no C compiler (cc) on this machine; to set clocks and lose power, install one: " +
	"apt-get install gcc")

const buildTimeout = 30 * time.Second

func (t *Topology) buildShims(ctx context.Context) error {
	var names []string
	if t.Options.Clock {
		names = append(names, clockShim)
	}
	if d := t.Options.Durable; d != "" && !slices.Contains(durabilities, d) {
		return fmt.Errorf("no durability %q: there are %q", d, durabilities)
	}
	if t.Options.Power {
		names = append(names, fsyncShim)
	}
	if len(names) > 0 && runtime.GOOS != "linux" {
		return fmt.Errorf("clocks and power loss need LD_PRELOAD, which %s does not have", runtime.GOOS)
	}
	for _, name := range names {
		path, err := buildShim(ctx, t.dir, name)
		if err != nil {
			return err
		}
		t.shims = append(t.shims, path)
	}
	return nil
}

func buildShim(ctx context.Context, dir, name string) (path string, err error) {
	path = filepath.Join(dir, name+".so")
	if self, err := os.Executable(); err == nil {
		built := builtShim(self, name)
		if _, err := os.Stat(built); err == nil {
			return path, os.Symlink(built, path)
		}
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return "", fmt.Errorf("%w (%w)", errNoCompiler, err)
	}
	text, err := shimSources.ReadFile("shim/" + name + ".c")
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, name+".c")
	if err := os.WriteFile(source, text, 0o600); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, compiler, "-O2", "-shared", "-fPIC", "-o", path, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s.c: %w\n%s", name, err, out)
	}
	return path, nil
}

func builtShim(self, name string) string {
	return filepath.Join(filepath.Dir(self), "hammerlock-"+name+".so")
}

func (n *Node) clockPath() string  { return filepath.Join(n.dir, "clock") }
func (n *Node) syncedPath() string { return filepath.Join(n.dir, "synced") }

func (n *Node) shimEnv() []string {
	if len(n.topology.shims) == 0 {
		return nil
	}
	// relative to the node's directory: LD_PRELOAD separates names by spaces, and a full path may contain a space
	var libraries []string
	for _, path := range n.topology.shims {
		libraries = append(libraries, "../"+filepath.Base(path))
	}
	return []string{
		"LD_PRELOAD=" + strings.Join(libraries, " "),
		"HAMMERLOCK_CLOCK=" + n.clockPath(), "HAMMERLOCK_SYNCED=" + n.syncedPath(),
	}
}

// The shims map these files into memory. The files outlive the server, as a machine's clock and disk do.
const (
	clockSize   = 40
	syncedSlots = 4096
	slotSize    = 16
)

func (n *Node) shimFiles() error {
	if len(n.topology.shims) == 0 {
		return nil
	}
	return errors.Join(
		os.WriteFile(n.clockPath(), make([]byte, clockSize), 0o600),
		os.WriteFile(n.syncedPath(), make([]byte, syncedSlots*slotSize), 0o600))
}

// clockCache is longer than any time for which a server does not read the clock. Valkey 9.1 reads it once a
// millisecond, and interpolates with the processor's cycle counter.
const clockCache = 5 * time.Millisecond

// SetClock makes the node's wall clock show true time plus the offset, and then run at this rate: 1 is true, 2 is
// twice as fast. SetClock(0, 1) undoes this. The change is effective when SetClock returns, and survives a restart of
// the node. The monotonic clock stays true.
func (n *Node) SetClock(offset time.Duration, rate float64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.topology.Options.Clock || n.control == nil {
		return fmt.Errorf("node %s: the topology was brought up without clocks", n.Name)
	}
	if math.IsNaN(rate) || rate < 0 || rate > 1000 {
		return fmt.Errorf("node %s: a clock runs at a rate from 0 to 1000, not %v", n.Name, rate)
	}
	n.clockSet += 2
	err := setClock(n.clockPath(), n.clockSet, offset, rate)
	<-time.After(clockCache)
	return err
}

// setClock writes the state of a clock to its file. The argument count must be even, and greater than at the last
// change.
func setClock(path string, count int64, offset time.Duration, rate float64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		writeNumbers(f, 0, count-1), // odd: readers wait
		writeNumbers(f, 8, int64(offset), time.Now().UnixNano(), int64((rate-1)*1e9)),
		writeNumbers(f, 0, count), f.Close())
}

func writeNumbers(f *os.File, at int64, numbers ...int64) error {
	var b []byte
	for _, x := range numbers {
		b = binary.NativeEndian.AppendUint64(b, uint64(x))
	}
	_, err := f.WriteAt(b, at)
	return err
}

// PowerLoss kills the server and truncates its append-only file to the synced part, as if the machine had lost power.
// This is the worst case, since a disk may have kept more. Torn sectors and lost directory entries are not modelled.
// After Kill, in contrast, the operating system keeps all writes.
func (n *Node) PowerLoss() error {
	if !n.topology.Options.Power {
		return fmt.Errorf("node %s: the topology was brought up without power loss", n.Name)
	}
	if n.Role == Sentinel {
		return fmt.Errorf("node %s: a sentinel keeps no log that power could lose", n.Name)
	}
	if err := n.Kill(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.forgetUnsynced()
}

func (n *Node) Forget() error {
	if n.dir == "" { // an in-memory server has no directory
		return nil
	}
	return os.RemoveAll(filepath.Join(n.dir, "appendonlydir"))
}

// forgetUnsynced truncates the files to their synced length and starts a new table of these lengths.
func (n *Node) forgetUnsynced() error {
	synced, err := readSynced(n.syncedPath())
	if err != nil {
		return err
	}
	table := make([]byte, syncedSlots*slotSize)
	err = filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".aof" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inode := info.Sys().(*syscall.Stat_t).Ino
		size := min(info.Size(), int64(synced[inode]))
		setSynced(table, inode, uint64(size))
		return os.Truncate(path, size)
	})
	return errors.Join(err, os.WriteFile(n.syncedPath(), table, 0o600))
}

// readSynced returns the synced length of each file, by its inode.
func readSynced(path string) (map[uint64]uint64, error) {
	table, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	synced := map[uint64]uint64{}
	for slot := range slices.Chunk(table, slotSize) {
		if inode := binary.NativeEndian.Uint64(slot); inode != 0 {
			synced[inode] = binary.NativeEndian.Uint64(slot[8:])
		}
	}
	return synced, nil
}

// setSynced writes a file's synced length to the table that the shim maps.
func setSynced(table []byte, inode, size uint64) {
	for i := range uint64(syncedSlots) {
		slot := table[(inode+i)%syncedSlots*slotSize:]
		if binary.NativeEndian.Uint64(slot) == 0 {
			binary.NativeEndian.PutUint64(slot, inode)
			binary.NativeEndian.PutUint64(slot[8:], size)
			return
		}
	}
}
