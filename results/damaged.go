package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/history"
)

// ReadLatencies reads the latency log of a saved run, if it has one. It calls the function each for every histogram.
func ReadLatencies(dir string, each func(*hdrhistogram.Histogram)) (err error) {
	path := filepath.Join(dir, LatencyFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	text := bufio.NewReader(file)
	if head, _ := text.Peek(2); string(head) != "#[" {
		return damaged(path, errForeign)
	}
	end := &lastByte{Reader: text}
	defer func() { // the library may panic at what it did not write
		if p := recover(); p != nil {
			err = damaged(path, fmt.Errorf("%v", p))
		}
	}()
	log := hdrhistogram.NewHistogramLogReader(end)
	for {
		h, err := log.NextIntervalHistogram()
		switch {
		case err != nil:
			return damaged(path, err)
		case h != nil:
			each(h)
		case end.last != '\n':
			return damaged(path, errTorn)
		default:
			return nil
		}
	}
}

// lastByte remembers the last byte that was read.
type lastByte struct {
	io.Reader
	last byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.last = p[n-1]
	}
	return n, err
}

// OpenHistory reads the history of a saved run. The error is an ErrDamaged if it cannot be read.
func OpenHistory(path string) (*history.History, error) {
	h, err := history.Open(path)
	if inner := errors.Unwrap(err); inner != nil && !errors.As(err, new(*fs.PathError)) {
		err = damaged(path, inner)
	}
	return h, err
}

// ScanHistory reads the history of a saved run, and calls the function each for every operation. It returns nil
// without an error if the run has none, as those of bench.
func ScanHistory(dir string, r *Run, each func(*history.Op)) (*history.History, error) {
	path := filepath.Join(dir, HistoryFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h, err := history.Scan(file, each)
	if err == nil && h.Partial != "" && r.Partial == "" {
		err = fmt.Errorf("%w, although the run was not partial: %s", errTorn, h.Partial)
	}
	if err != nil {
		return h, damaged(path, err)
	}
	return h, nil
}

// Undamaged returns an error for each file beside a run's record that is damaged.
func Undamaged(dir string, r *Run) error {
	_, err := ScanHistory(dir, r, func(*history.Op) {})
	return errors.Join(err, ReadLatencies(dir, func(*hdrhistogram.Histogram) {}))
}
