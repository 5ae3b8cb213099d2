package recording

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"hammerlock/history"
)

// full is a disk that has room for the beginning of a history only.
type full struct{ writes int }

func (f *full) Write(b []byte) (int, error) {
	if f.writes++; f.writes > 2 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestAFullDiskIsToldOnce: a recording on a full disk ends with one error, however many notes there are.
func TestAFullDiskIsToldOnce(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	w, err := history.Create(&full{}, history.Header{})
	if err != nil {
		t.Fatal(err)
	}
	x := &tape{file: file, writer: w}
	for i := range 100 {
		x.note(history.ID(i), "a note")
	}
	x.flush(flushEvery)
	if err := x.close("", false, nil, history.Agreement{}); err == nil ||
		strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("got %v", err)
	}
}
