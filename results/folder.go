package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MostKilled limits how many bytes the histories of killed runs can have in a directory of runs. If they have more,
// the oldest are deleted.
const MostKilled = 2 << 30

// Folder is the directory of one run. Its name has the suffix ".partial" until Commit removes that. So a directory
// without this suffix is complete.
type Folder struct {
	// Killed lists the directories of killed runs with a history that OpenFolder found for the first time.
	Killed []string

	name string
	dir  string // final name
	temp string
	lock *os.File
	file *os.File // latency log
	log  *bufio.Writer
}

// OpenFolder makes the directory of a run. It also deletes the files of killed processes, except for histories of at
// most MostKilled bytes in total.
func OpenFolder(out, name string) (*Folder, error) {
	f := &Folder{name: name, dir: filepath.Join(out, name), temp: filepath.Join(out, name+unfinished)}
	err := f.removeDead(out, MostKilled)
	if err = errors.Join(err, f.claim()); err != nil {
		return nil, fmt.Errorf("make the run's directory: %w", err)
	}
	if f.file, err = os.Create(f.Path(LatencyFile)); err != nil {
		return nil, fmt.Errorf("make the latency log: %w", err)
	}
	f.log = bufio.NewWriter(f.file)
	return f, nil
}

// Path returns the path of a file in the directory, before Commit.
func (f *Folder) Path(file string) string { return filepath.Join(f.temp, file) }

// Log returns the writer of the latency log. If a write fails, Commit or Leave returns the error.
func (f *Folder) Log() io.Writer { return f.log }

// claim makes the directory. It locks the directory under another name first, so that no process takes it for
// abandoned.
func (f *Folder) claim() (err error) {
	begun := f.temp + ".new"
	if err := os.MkdirAll(begun, 0o755); err != nil {
		return err
	}
	if f.lock, err = os.Create(filepath.Join(begun, writerFile)); err != nil {
		return err
	}
	return errors.Join(syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), os.Rename(begun, f.temp))
}

// removeDead deletes the directories of killed processes, except for histories of at most this many bytes in total.
func (f *Folder) removeDead(out string, most int64) error {
	found, err := os.ReadDir(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// Names begin with a time, so the newest directory comes first.
	for _, entry := range slices.Backward(found) {
		dir := filepath.Join(out, entry.Name())
		if !strings.HasSuffix(dir, unfinished) {
			continue
		}
		lock, failed := os.Open(filepath.Join(dir, writerFile))
		marked := failed != nil
		if marked {
			lock, failed = os.Open(filepath.Join(dir, killedFile))
		}
		if failed != nil {
			continue // Leave kept the run on purpose, or the run has just ended
		}
		if abandoned(lock) {
			_, missing := os.Stat(filepath.Join(dir, HistoryFile))
			if missing == nil {
				most -= size(dir)
			}
			switch {
			case missing != nil || most < 0:
				err = errors.Join(err, os.RemoveAll(dir))
			case !marked:
				err = errors.Join(err, os.Rename(lock.Name(), filepath.Join(dir, killedFile)))
				f.Killed = append(f.Killed, dir)
			}
		}
		err = errors.Join(err, lock.Close())
	}
	return err
}

// abandoned reports whether the process that wrote a run is gone, and locks the run's lock file. A run that has just
// ended is not abandoned: its process removed the lock file before it unlocked the file.
func abandoned(lock *os.File) bool {
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	opened, err := lock.Stat()
	there, gone := os.Stat(lock.Name())
	return err == nil && gone == nil && os.SameFile(opened, there)
}

func size(dir string) (all int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, gone := d.Info(); gone == nil {
				all += info.Size()
			}
		}
		return nil
	})
	return all
}

func (f *Folder) close() error {
	return errors.Join(f.log.Flush(), f.file.Close(), os.Remove(f.Path(writerFile)), f.lock.Close())
}

// Commit writes the record of the run, gives the directory its final name and lets the link "latest" point to it. It
// returns the path of the directory.
func (f *Folder) Commit(r *Run) (string, error) {
	if err := f.close(); err != nil {
		return "", fmt.Errorf("save the latency log: %w", err)
	}
	r.Schema = schemaVersion
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(f.Path(RunFile), append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("save the run: %w", err)
	}
	if err := f.writeBenchmark(r); err != nil {
		return "", fmt.Errorf("save the run as a benchmark: %w", err)
	}
	if err := os.Rename(f.temp, f.dir); err != nil {
		return "", fmt.Errorf("save the run: %w", err)
	}
	return f.dir, f.linkLatest()
}

func (f *Folder) writeBenchmark(r *Run) error {
	file, err := os.Create(f.Path(benchmarkFile))
	if err != nil {
		return err
	}
	return errors.Join(WriteBenchmarks(file, []Run{*r}), file.Close())
}

// linkLatest lets the link "latest" point to this run. It renames a new link, so that "latest" exists all the time.
func (f *Folder) linkLatest() error {
	aside := f.dir + "." + latestLink
	if err := os.Symlink(f.name, aside); err != nil {
		return fmt.Errorf("point %s to the run: %w", latestLink, err)
	}
	return os.Rename(aside, filepath.Join(filepath.Dir(f.dir), latestLink))
}

// Leave closes the files and keeps the directory with the suffix ".partial".
func (f *Folder) Leave() error { return f.close() }

// Left returns an error that tells where the files of a run are that could not be saved.
func (f *Folder) Left() error {
	dir := f.temp
	if _, err := os.Stat(dir); err != nil {
		dir = f.dir // it has its final name already
	}
	return fmt.Errorf("what was recorded is left in %s", dir)
}

// Discard deletes the directory of a run that could not take place.
func (f *Folder) Discard() error { return errors.Join(f.close(), os.RemoveAll(f.temp)) }

// ReadRun reads the record of a saved run. The error is an ErrDamaged if there is one that cannot be read.
func ReadRun(dir string) (*Run, error) {
	path := filepath.Join(dir, RunFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is no saved run: it has no %s", dir, RunFile)
	}
	if err != nil {
		return nil, err
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, damaged(path, err)
	}
	if r.Schema > schemaVersion {
		return nil, fmt.Errorf("%s has schema %d, and this build reads up to %d: a newer one wrote it", path, r.Schema,
			schemaVersion)
	}
	return &r, nil
}
