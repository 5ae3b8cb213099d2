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

// RecorderDir is the name of the flight recorder's directory, which is beside the history of a watch. Each file in it
// has a piece, which is a series of operations.
const RecorderDir = "recorder"

// restFile is the name of the file with the latest piece, which is not yet complete.
const restFile = "rest"

const (
	cutAfter    = 10 * time.Second // a violation is saved as a run after this time, when all its operations are known
	restEvery   = 5 * time.Second  // kill -9 loses at most the operations of this time
	mostPieces  = 2 << 30          // limit in bytes of all pieces; the oldest are deleted
	mostWaiting = 8                // limit of pieces that wait to be written
	mostLocks   = 1000             // limit of locks with violations that wait to be cut out
	mostCuts    = 100              // limit of cuts in a watch
)

// Violated is a lock with violations that have not been cut out, which means saved as a run.
type Violated struct {
	Key, Cause string // of the first violation
	At         time.Duration
	Count      int
}

// recorder is the flight recorder of a watch that may last for weeks. It keeps the operations of the last minutes on
// disk, in pieces. It also decides when violations are cut out, which means saved as a run. Its callers never wait
// for the disk. A nil recorder does nothing.
type recorder struct {
	keep    time.Duration
	queue   chan *witness.Piece
	done    chan struct{} // closed when no more pieces follow
	stopped sync.Once
	writing sync.WaitGroup
	dir     string
	written time.Duration // when the incomplete piece was last written

	mu      sync.Mutex
	pieces  []shelved
	handled int   // number of pieces that were written or lost
	lost    int64 // number of lost pieces: the disk was too slow or full
	due     map[string]*Violated
	cut     map[string]time.Duration // lock -> time of its last cut
	cuts    int
	left    int64 // number of violations that are in no cut, because of the limits
}

// shelved describes a piece on disk.
type shelved struct {
	number int
	to     time.Duration
	ops    int
	size   int64
}

// packed is the form of a piece in its file.
type packed struct {
	witness.Piece
	Packed, Guessed []byte // the operations in encoded form
}

func newRecorder(keep time.Duration) *recorder {
	return &recorder{keep: keep, queue: make(chan *witness.Piece, mostWaiting), done: make(chan struct{}),
		due: map[string]*Violated{}, cut: map[string]time.Duration{}}
}

// The method open creates the recorder's directory, and starts to write.
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

// take passes a piece on to be written, without waiting. If too many pieces wait, the piece is lost.
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

// shelve writes a piece to disk, and deletes pieces that are too old or exceed the limit.
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

// The method rest writes the incomplete piece, but not more often than restEvery. If the disk is full, the last
// version stays.
func (c *recorder) rest(now time.Duration, piece func() *witness.Piece) {
	if c.written == 0 || now-c.written >= restEvery {
		c.written = now
		_, _ = write(filepath.Join(c.dir, restFile), piece())
	}
}

// shelved returns the pieces on disk, once all pieces before the given one have been written or lost.
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

// latest returns the given piece, after as many of the pieces before it as do not exceed the number of operations.
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
			break // a gap may contain a release, so older pieces cannot be used
		}
		all, next = append(all, p), s.number
	}
	slices.Reverse(all)
	return append(all, before)
}

// violated records a violation, which will be cut out later.
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

// ripe returns the locks whose violations should be cut out now. After a cut, further violations of the lock wait for
// the next cut. It comes when the first is older than the recorder keeps operations, or at the end of the watch (over
// = true). Violations of the last seconds are in no cut, only in the history of the whole watch.
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

// stop ends the writing, and waits for the piece that is being written.
func (c *recorder) stop() {
	c.stopped.Do(func() { close(c.done) })
	c.writing.Wait()
}

// write writes a piece to a file. After an error, an older version of the file is unchanged.
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
		_ = os.Remove(begun) // an error is ignored: the disk is full
		return 0, err
	}
	return size, os.Rename(begun, path)
}

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

// Recorded completes the history h of a watch whose process was killed. It adds the operations in the recorder's
// files in dir. Without such files, it returns h.
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
	known := map[history.ID]bool{} // the incomplete piece may repeat operations of complete ones
	for _, p := range all {
		for i := 0; i < len(p.Ops) && p.Number >= rest.Number; i++ {
			known[p.Ops[i].ID] = true
		}
	}
	rest.Ops = slices.DeleteFunc(rest.Ops, func(op history.Op) bool { return known[op.ID] })
	return witness.Join(h, append(all, rest), anyLock), err
}

func anyLock(witness.Lock) bool { return true }

// Record starts to keep operations on disk, in a subdirectory of dir. It does nothing if this watch keeps none there:
// see Spec.Keep.
func (s *Source) Record(dir string) error {
	if s.recorder == nil {
		return nil
	}
	return s.recorder.open(filepath.Join(dir, RecorderDir))
}

// Violated returns the locks whose violations should be cut out now. The argument over is true at the end of the
// watch.
func (s *Source) Violated(over bool) []Violated {
	if s.recorder == nil {
		return nil
	}
	return s.recorder.ripe(s.clock.Now(), over)
}

// Cut returns a history with the operations of the given locks, as far back as the recorder has kept them.
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

// Told describes the violations of a lock for the user.
func (s *Source) Told(v *Violated) string {
	text := fmt.Sprintf("%s: %s at %s", v.Key, v.Cause, s.started.Add(v.At).UTC().Format(time.RFC3339Nano))
	if v.Count > 1 {
		text += fmt.Sprintf(", and %d more", v.Count-1)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
