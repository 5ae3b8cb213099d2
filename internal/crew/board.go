package crew

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"hammerlock/history"
	"hammerlock/workload"
)

// board is the memory that the suite shares with its worker processes: the gate, the tempo, and every lane. It is a
// file without a name, so that nothing is left of it when the last process ends.
type board struct {
	file   *os.File
	memory []byte
	slots  int
}

// tempoAt and lanesAt are where the tempo and the lanes begin: the gate has lines of its own.
const (
	tempoAt = 1024
	lanesAt = 8192
)

// makeBoard makes the memory for lanes of so many slots.
func makeBoard(lanes, slots int) (*board, error) {
	file, err := history.Unnamed(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("make the shared memory: %w", err)
	}
	size := int64(lanesAt + lanes*history.LaneSize(slots))
	if err := fill(file, size); err != nil {
		return nil, errors.Join(fmt.Errorf("make the shared memory, %d bytes in %s (TMPDIR): %w", size, os.TempDir(),
			err), file.Close())
	}
	return mapBoard(file, slots)
}

// fill writes so many zeros: memory of a file that has no room for it would end the process that writes there.
func fill(file *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(zeros)) {
		if _, err := file.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			return err
		}
	}
	return nil
}

// mapBoard maps a board that may have been made by another process.
func mapBoard(file *os.File, slots int) (*board, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the shared memory: %w", err)
	}
	return &board{file: file, memory: memory, slots: slots}, nil
}

func (b *board) gate() (*workload.Gate, error) { return workload.GateIn(b.memory[:tempoAt]) }

func (b *board) tempo() (*workload.Tempo, error) { return workload.TempoIn(b.memory[tempoAt:lanesAt]) }

// lane returns lane number n: for its writer in one process, for its reader in another.
func (b *board) lane(clock *history.Clock, n int, worker int32) *history.Lane {
	size := history.LaneSize(b.slots)
	return history.NewLaneIn(b.memory[lanesAt+n*size:][:size], clock, n, worker, b.slots)
}

func (b *board) close() error {
	err := errors.Join(syscall.Munmap(b.memory), b.file.Close())
	b.memory = nil
	return err
}
