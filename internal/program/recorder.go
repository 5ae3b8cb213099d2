package program

import (
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/witness"
)

// RecorderDir is the directory of the flight recorder, beside the history of a watch. It has a file for each piece.
const RecorderDir = "recorder"

// restFile is the file of the piece that is not complete yet.
const restFile = "rest"

const (
	cutAfter    = 10 * time.Second // time from a violation until it is cut out: by then its operations are known
	restEvery   = 5 * time.Second  // how much a kill -9 loses at most
	mostPieces  = 2 << 30          // bytes of all pieces; the oldest are deleted first
	mostWaiting = 8                // pieces that wait to be written
	mostLocks   = 1000             // violated locks that wait to be cut out
	mostCuts    = 100              // largest number of times that violations of a watch are cut out
)

// Violated is a lock with violations that were not cut out yet.
type Violated struct {
	Key, Cause string // of the first violation
	At         time.Duration
	Count      int
}

// recorder is the flight recorder of a watch that goes on for weeks. It keeps the operations of the last minutes in
// pieces on disk. It says which violations are to be cut out into their own history. It takes pieces without waiting
// for the disk. A nil recorder keeps nothing.
type recorder struct {
	keep    time.Duration
	queue   chan *witness.Piece
	done    chan struct{} // closed when nothing more is to be written
	stopped sync.Once
	writing sync.WaitGroup
	dir     string
	written time.Duration // when the rest was written

	mu      sync.Mutex
	pieces  []shelved
	handled int   // number of pieces that were written, or lost
	lost    int64 // number of pieces for which the disk had no time or no room
	due     map[string]*Violated
	cut     map[string]time.Duration // by lock: when it was last cut out
	cuts    int
	left    int64 // number of violations that were not cut out
}

// shelved is a piece on disk.
type shelved struct {
	number int
	to     time.Duration
	ops    int
	size   int64
}

// packed is a piece in the form of its file.
type packed struct {
	witness.Piece
	Packed, Guessed []byte // the operations
}

func newRecorder(keep time.Duration) *recorder {
	return &recorder{keep: keep, queue: make(chan *witness.Piece, mostWaiting), done: make(chan struct{}),
		due: map[string]*Violated{}, cut: map[string]time.Duration{}}
}

// open begins to write into a directory.
func (c *recorder) open(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("keep what is seen: %w", err)
	}
	c.dir = dir
	c.writing.Go(func() {
		for {
			select {
			case p := <-c.queue:
				c.shelve(p)
			case <-c.done:
				return
			}
		}
	})
	return nil
}

// take takes a piece, without waiting.
func (c *recorder) take(p *witness.Piece) {
	select {
	case c.queue <- p:
	default:
		c.lose()
	}
}

func (c *recorder) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost++
	c.handled++
}

// shelve writes a piece, and deletes those that are too old.
func (c *recorder) shelve(p *witness.Piece) {
	size, err := write(filepath.Join(c.dir, strconv.Itoa(p.Number)), p)
	if err != nil {
		c.lose()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handled++
	c.pieces = append(c.pieces, shelved{p.Number, p.To, len(p.Ops), size})
	all := int64(0)
	for _, s := range c.pieces {
		all += s.size
	}
	for len(c.pieces) > 1 && (c.pieces[0].to < p.To-c.keep || all > mostPieces) {
		all -= c.pieces[0].size
		_ = os.Remove(filepath.Join(c.dir, strconv.Itoa(c.pieces[0].number)))
		c.pieces = c.pieces[1:]
	}
}

// rest writes the incomplete piece from time to time. If the disk has no room, the version that was written before
// stays.
func (c *recorder) rest(now time.Duration, piece func() *witness.Piece) {
	if c.written == 0 || now-c.written >= restEvery {
		c.written = now
		_, _ = write(filepath.Join(c.dir, restFile), piece())
	}
}

// shelved lists the pieces on disk before a given one, as soon as all of them were written.
func (c *recorder) shelved(before *witness.Piece) []shelved {
	for {
		c.mu.Lock()
		pieces, all := slices.Clone(c.pieces), c.handled >= before.Number
		c.mu.Unlock()
		if all {
			return pieces
		}
		select {
		case <-c.done:
			return pieces
		case <-time.After(tickEvery):
		}
	}
}

// latest returns a piece and those before it, up to a number of operations.
func (c *recorder) latest(before *witness.Piece, most int) (all []*witness.Piece) {
	pieces := c.shelved(before)
	most -= len(before.Ops)
	next := before.Number
	for _, s := range slices.Backward(pieces) {
		if most -= s.ops; s.number >= before.Number {
			continue
		}
		p, err := read(filepath.Join(c.dir, strconv.Itoa(s.number)))
		if err != nil || s.number != next-1 || most < 0 {
			break // a release may be among the operations that are missing between two pieces
		}
		all, next = append(all, p), s.number
	}
	slices.Reverse(all)
	return append(all, before)
}

// violated adds a violation.
func (c *recorder) violated(n *witness.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.due[n.Key]
	switch {
	case v != nil:
		v.Count++
	case len(c.due) < mostLocks && c.cuts < mostCuts:
		c.due[n.Key] = &Violated{Key: n.Key, Cause: n.Cause, At: n.At, Count: 1}
	default:
		c.left++
	}
}

// ripe lists the violated locks that are to be cut out now. A lock is cut out again only when its last cut is older
// than the recorder keeps, or at the end of the watch. Violations in between are in the next cut. The history of the
// watch has the last part.
func (c *recorder) ripe(now time.Duration, over bool) (all []Violated) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, at := range c.cut {
		if at < now-c.keep {
			delete(c.cut, key)
		}
	}
	for key, v := range c.due {
		if _, early := c.cut[key]; v.At <= now-cutAfter && (over || !early) {
			all = append(all, *v)
			delete(c.due, key)
			c.cut[key] = now
		}
	}
	if len(all) > 0 {
		c.cuts++
	}
	slices.SortFunc(all, func(a, b Violated) int { return cmp.Compare(a.At, b.At) })
	return all
}

// stop ends the writing.
func (c *recorder) stop() {
	c.stopped.Do(func() { close(c.done) })
	c.writing.Wait()
}

// write writes a piece to a file, completely or not at all.
func write(path string, p *witness.Piece) (size int64, err error) {
	const opSize = 64 // about
	f := packed{
		Piece: *p, Packed: history.AppendOps(make([]byte, 0, opSize*len(p.Ops)), p.Ops),
		Guessed: history.AppendOps(nil, p.Guesses),
	}
	f.Ops, f.Guesses = nil, nil
	begun := path + ".new"
	to, err := os.Create(begun)
	if err != nil {
		return 0, err
	}
	err = gob.NewEncoder(to).Encode(&f)
	size, _ = to.Seek(0, 1)
	if err = errors.Join(err, to.Close()); err != nil {
		_ = os.Remove(begun) // the error is ignored: there is no room for it
		return 0, err
	}
	return size, os.Rename(begun, path)
}

// read reads a piece.
func read(path string) (*witness.Piece, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	var f packed
	if err := gob.NewDecoder(from).Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var failed error
	f.Ops, err = history.ParseOps(f.Packed)
	f.Guesses, failed = history.ParseOps(f.Guessed)
	return &f.Piece, errors.Join(err, failed)
}

// Recorded completes the history of a watch whose process was killed. It adds the operations that the watch's recorder
// has left in the directory. Without a recorder it returns the same history.
func Recorded(dir string, h *history.History) (*history.History, error) {
	dir = filepath.Join(dir, RecorderDir)
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	c := recorder{dir: dir, handled: math.MaxInt}
	for _, f := range found {
		if n, failed := strconv.Atoi(f.Name()); failed == nil {
			c.pieces = append(c.pieces, shelved{number: n})
		}
	}
	slices.SortFunc(c.pieces, func(a, b shelved) int { return a.number - b.number })
	rest, missing := read(filepath.Join(dir, restFile))
	if missing != nil {
		rest = &witness.Piece{}
	}
	next := rest.Number
	if n := len(c.pieces); n > 0 {
		next = max(next, c.pieces[n-1].number+1)
	}
	all := c.latest(&witness.Piece{Number: next}, math.MaxInt)
	all = all[:len(all)-1]
	known := map[history.ID]bool{} // operations in complete pieces may be in the rest as well
	for _, p := range all {
		for i := 0; i < len(p.Ops) && p.Number >= rest.Number; i++ {
			known[p.Ops[i].ID] = true
		}
	}
	rest.Ops = slices.DeleteFunc(rest.Ops, func(op history.Op) bool { return known[op.ID] })
	return witness.Join(h, append(all, rest), anyLock), err
}

func anyLock(witness.Lock) bool { return true }

// Record begins to keep the operations of the last minutes beside the history of a watch, if the Spec says so.
func (s *Source) Record(dir string) error {
	if s.recorder == nil {
		return nil
	}
	return s.recorder.open(filepath.Join(dir, RecorderDir))
}

// Violated lists the locks whose violations are to be cut out now. If over is true, the watch has ended.
func (s *Source) Violated(over bool) []Violated {
	if s.recorder == nil {
		return nil
	}
	return s.recorder.ripe(s.clock.Now(), over)
}

// Cut returns the history of some locks, as far as it is kept.
func (s *Source) Cut(all []Violated) *history.History {
	keys := map[string]bool{}
	for _, v := range all {
		keys[v.Key] = true
	}
	s.mu.Lock()
	own := s.own
	s.mu.Unlock()
	h := witness.Join(&own, s.recorder.latest(s.reader.Rest(), math.MaxInt),
		func(l witness.Lock) bool { return keys[l.Key] })
	sums, _ := s.reader.Sums()
	h.Wire = s.limits(&sums)
	return h
}

// Told describes a lock's violations.
func (s *Source) Told(v *Violated) string {
	text := fmt.Sprintf("%s: %s at %s", v.Key, v.Cause, s.started.Add(v.At).UTC().Format(time.RFC3339Nano))
	if v.Count > 1 {
		text += fmt.Sprintf(", and %d more", v.Count-1)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
