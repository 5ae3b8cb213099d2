package matrix

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// cellsFile is the file in a matrix's directory that grows by a line a cell.
const cellsFile = "cells.jsonl"

// key identifies a run of a cell.
type key struct {
	cell Cell
	seed uint64
}

// Log keeps the records of a matrix, so that one that was interrupted goes on where it stopped.
type Log struct {
	file *os.File
	done map[key]Record
}

// head is the first line of the file.
type head struct {
	Seed uint64 `json:"matrix_seed"`
}

// Create makes the directory of a matrix and begins its log.
func Create(dir string, seed uint64) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the matrix's directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, cellsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("make the matrix's log: %w", err)
	}
	l := &Log{file: file, done: map[key]Record{}}
	return l, l.add(head{seed})
}

// Resume opens the log of a matrix and returns its seed. An incomplete last line, which an interrupt leaves, is dropped.
func Resume(dir string) (l *Log, seed uint64, err error) {
	path := filepath.Join(dir, cellsFile)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("resume a matrix: %w", err)
	}
	l = &Log{file: file, done: map[key]Record{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	r := bufio.NewReader(file)
	var whole int64
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // with a line that is not whole, or none
		}
		if err != nil {
			return nil, 0, fmt.Errorf("resume a matrix: %w", err)
		}
		if err := l.read(line, number, &seed); err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		whole += int64(len(line))
	}
	if whole == 0 {
		return nil, 0, fmt.Errorf("%s: it does not say which seed the matrix had", path)
	}
	if err := file.Truncate(whole); err != nil {
		return nil, 0, err
	}
	_, err = file.Seek(whole, io.SeekStart)
	return l, seed, err
}

func (l *Log) read(line []byte, number int, seed *uint64) error {
	if number == 1 {
		var h head
		err := json.Unmarshal(line, &h)
		*seed = h.Seed
		return err
	}
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	l.done[key{r.Cell, r.Cell.seed(*seed)}] = r
	return nil
}

// find returns the record of a cell that was run before; false if there is none, or the run could not be made.
func (l *Log) find(c Cell, seed uint64) (Record, bool) {
	r, ok := l.done[key{c, c.seed(seed)}]
	return r, ok && r.Error == ""
}

// add writes a line: the head, or a record. It is called by one goroutine at a time.
func (l *Log) add(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the matrix's log: %w", err)
	}
	return nil
}

// Close ends the log.
func (l *Log) Close() error { return l.file.Close() }
