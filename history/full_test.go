package history

import (
	"strings"
	"syscall"
	"testing"
)

// room is a disk with room for a number of bytes.
type room int

func (s *room) Write(b []byte) (int, error) {
	if *s -= room(len(b)); *s < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestAFullDiskIsToldOnce: writing to a full disk ends with one error, however many operations and notes there are.
func TestAFullDiskIsToldOnce(t *testing.T) {
	h := History{Ops: make([]Op, 100_000), Notes: map[ID]string{1: "a", 2: "b"}}
	disk := room(100_000)
	if err := h.write(&disk); err == nil || strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("got %.200v", err)
	}
}
