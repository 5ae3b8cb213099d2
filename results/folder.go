package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The files of a saved run.
const (
	RunFile     = "run.json"
	LatencyFile = "latency.hlog"
	HistoryFile = "history.bin"
	latestLink  = "latest"
	unfinished  = ".partial"
)

// Folder is the directory of one run. While the run goes on its name ends in ".partial"; Commit gives it its
// own name, so that a directory without that ending is whole.
type Folder struct {
	name string
	dir  string // final
	temp string
	log  *latencyLog
}

// OpenFolder makes the directory of a run that starts now.
func OpenFolder(out, name string, start time.Time) (*Folder, error) {
	f := &Folder{name: name, dir: filepath.Join(out, name), temp: filepath.Join(out, name+unfinished)}
	if err := os.MkdirAll(f.temp, 0o755); err != nil {
		return nil, fmt.Errorf("make the run's directory: %w", err)
	}
	log, err := newLatencyLog(filepath.Join(f.temp, LatencyFile), start)
	if err != nil {
		return nil, err
	}
	f.log = log
	return f, nil
}

// Interval writes the histogram of one second to the latency log.
func (f *Folder) Interval(tag string, from, to time.Duration, l *Latency) {
	f.log.write(tag, from, to, l)
}

// Commit writes the record, gives the directory its name and lets "latest" point to it. It returns the
// directory.
func (f *Folder) Commit(r *Run) (string, error) {
	if err := f.log.close(); err != nil {
		return "", fmt.Errorf("save the latency log: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(f.temp, RunFile), append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("save the run: %w", err)
	}
	if err := f.benchmark(r); err != nil {
		return "", fmt.Errorf("save the run as a benchmark: %w", err)
	}
	if err := os.Rename(f.temp, f.dir); err != nil {
		return "", fmt.Errorf("save the run: %w", err)
	}
	return f.dir, f.point()
}

func (f *Folder) benchmark(r *Run) error {
	file, err := os.Create(filepath.Join(f.temp, BenchmarkFile))
	if err != nil {
		return err
	}
	return errors.Join(WriteBenchmarks(file, []Run{*r}), file.Close())
}

// Path names a file of the run.
func (f *Folder) Path(file string) string { return filepath.Join(f.temp, file) }

// Leave lets what was written lie, marked as partial.
func (f *Folder) Leave() error { return f.log.close() }

// Discard removes what was written of a run that could not be carried out.
func (f *Folder) Discard() error { return errors.Join(f.log.close(), os.RemoveAll(f.temp)) }

// point lets "latest" name this run. The link is made aside and renamed, so that it always points somewhere.
func (f *Folder) point() error {
	aside := f.dir + "." + latestLink
	if err := os.Symlink(f.name, aside); err != nil {
		return fmt.Errorf("point %s to the run: %w", latestLink, err)
	}
	return os.Rename(aside, filepath.Join(filepath.Dir(f.dir), latestLink))
}

// ReadRun reads the record of a saved run from its directory.
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
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

// latencyLog writes interval histograms in the HdrHistogram log format, version 2 of the encoding, with
// values in nanoseconds and maxima in milliseconds, as the usual tools read them.
type latencyLog struct {
	file *os.File
	buf  *bufio.Writer
	log  *hdrhistogram.HistogramLogWriter
	err  error
}

func newLatencyLog(path string, start time.Time) (*latencyLog, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make the latency log: %w", err)
	}
	buf := bufio.NewWriter(file)
	l := &latencyLog{file: file, buf: buf, log: hdrhistogram.NewHistogramLogWriter(buf)}
	ms := start.UnixMilli()
	l.err = errors.Join(
		l.log.OutputComment("[Logged with Hammerlock: latencies in ns, maxima in ms]"),
		l.log.OutputLogFormatVersion(),
		l.log.OutputStartTime(ms),
		l.log.OutputBaseTime(ms),
		l.log.OutputLegend(),
	)
	return l, nil
}

func (l *latencyLog) write(tag string, from, to time.Duration, latency *Latency) {
	if l.err != nil {
		return
	}
	h := latency.histogram()
	h.SetTag(tag)
	h.SetStartTimeMs(from.Milliseconds())
	h.SetEndTimeMs(to.Milliseconds())
	l.err = l.log.OutputIntervalHistogram(h)
}

func (l *latencyLog) close() error {
	err := errors.Join(l.err, l.buf.Flush(), l.file.Close())
	l.err, l.file = nil, nil
	return err
}
