package crew

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"hammerlock/history"
	"hammerlock/workload"
)

// board is memory that the suite shares with its worker processes. It contains a gate, which stops workers, a tempo,
// which is the rate of an open loop, and the lanes, which are the workers' logs. Its file has no name, so nothing is
// left when the last process ends.
type board struct {
	file   *os.File
	memory []byte
	slots  int
}

// tempoAt and lanesAt are the offsets of the tempo and the lanes in the board. The gate shares no cache line with
// them.
const (
	tempoAt = 1024
	lanesAt = 8192
)

// makeBoard makes a board with the given number of lanes, and of slots in each lane.
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

// fill writes zeros, so that the file system reserves the space. Otherwise a full disk would kill a process that
// writes to the mapped memory.
func fill(file *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(zeros)) {
		if _, err := file.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			return err
		}
	}
	return nil
}

// mapBoard maps a board into memory. Another process may have made the board.
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

// lane returns lane n of the board. Its writer and its reader may be in different processes.
func (b *board) lane(clock *history.Clock, n int, worker int32) *history.Lane {
	size := history.LaneSize(b.slots)
	return history.NewLaneIn(b.memory[lanesAt+n*size:][:size], clock, n, worker, b.slots)
}

func (b *board) close() error {
	err := errors.Join(syscall.Munmap(b.memory), b.file.Close())
	b.memory = nil
	return err
}
