package history

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestScanHandsOnWhatReadReturns(t *testing.T) {
	var file bytes.Buffer
	w, err := Create(&file, Header{Name: "scan", Workers: 3, Keys: 1})
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000 // several chunks
	for i := range n {
		at := time.Duration(i+1) * time.Millisecond
		op := Op{ID: ID(1<<idLaneShift | (i + 1)), Kind: Load, Outcome: OK, Call: at - 1, Return: at, Value: int64(i),
			Worker: 1}
		if err := w.Add(&op); err != nil {
			t.Fatal(err)
		}
		if i == 7 {
			if err := w.Note(op.ID, "seven"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(""); err != nil {
		t.Fatal(err)
	}
	whole, err := readFile(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var ops []Op
	h, err := Scan(bytes.NewReader(file.Bytes()), func(op *Op) { ops = append(ops, *op) })
	if err != nil {
		t.Fatal(err)
	}
	if len(ops) != n || !slices.Equal(ops, whole.Ops) || len(h.Ops) != 0 {
		t.Errorf("got %d operations, and %d kept; want the %d that are read whole", len(ops), len(h.Ops), n)
	}
	if h.Name != whole.Name || fmt.Sprint(h.Notes) != fmt.Sprint(whole.Notes) || h.Partial != "" {
		t.Errorf("got %+v", h)
	}
	torn, err := Scan(bytes.NewReader(file.Bytes()[:file.Len()-100]), func(*Op) {})
	if err != nil || torn.Partial == "" {
		t.Errorf("a torn file: got %v, partial %q", err, torn.Partial)
	}
	if _, err := Scan(bytes.NewReader([]byte("no history")), func(*Op) {}); err == nil {
		t.Error("what is no history was scanned")
	}
}
