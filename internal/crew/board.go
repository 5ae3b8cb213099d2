package crew

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"hammerlock/history"
	"hammerlock/workload"
)

// board is the memory that the suite shares with its worker processes: gate, tempo and lanes. It is a file without a
// name, so nothing is left when the last process ends.
type board struct {
	file   *os.File
	memory []byte
	slots  int
}

// tempoAt and lanesAt are the offsets of the tempo and the lanes. The gate has its own cache lines.
const (
	tempoAt = 1024
	lanesAt = 8192
)

// makeBoard makes the memory for a number of lanes with a number of slots each.
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

// fill writes zeros. Without this, a process that writes to a file system without room would be killed.
func fill(file *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(zeros)) {
		if _, err := file.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			return err
		}
	}
	return nil
}

// mapBoard maps a board, perhaps one that another process has made.
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

// lane returns lane n, for its writer in one process or its reader in another.
func (b *board) lane(clock *history.Clock, n int, worker int32) *history.Lane {
	size := history.LaneSize(b.slots)
	return history.NewLaneIn(b.memory[lanesAt+n*size:][:size], clock, n, worker, b.slots)
}

func (b *board) close() error {
	err := errors.Join(syscall.Munmap(b.memory), b.file.Close())
	b.memory = nil
	return err
}
