package history

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSpace grows lists on the heap and in files side by side, and frees them.
func TestSpace(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := Space{Large: 1 << 12}
	whole := Make[int64](&s, 1<<10)
	var a, b []int32
	for i := range int32(10_000) {
		a, b = Append(&s, a, i), Append(&s, b, -i)
		whole[i%(1<<10)]++
	}
	for i := range int32(10_000) {
		if a[i] != i || b[i] != -i {
			t.Fatalf("number %d is %d and %d", i, a[i], b[i])
		}
	}
	if whole[0] != 10 || whole[1<<10-1] != 9 {
		t.Errorf("the array has %d and %d, want 10 and 9", whole[0], whole[1<<10-1])
	}
	if n := len(s.maps); n != 3 {
		t.Errorf("%d files are mapped, want one for each array: what was outgrown was not given back", n)
	}
	if c := cap(Reserve(&s, Make[int64](&s, 8), 1000)); c < 1008 {
		t.Errorf("there is room for %d, want 1008", c)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v has a name", left)
	}
	if s.Free(); len(s.maps) > 0 {
		t.Errorf("%d files are mapped after Free", len(s.maps))
	}
}

// TestSpaceWithoutFiles expects the heap if the directory for files is missing or full.
func TestSpaceWithoutFiles(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	s := Space{Large: 1}
	list := Append(&s, Make[byte](&s, 3), 7)
	if len(list) != 4 || list[3] != 7 || len(s.maps) > 0 {
		t.Errorf("got %v, and %d files", list, len(s.maps))
	}
	t.Setenv("TMPDIR", "/dev/shm")
	if m := s.mapped(1 << 50); m != nil {
		t.Error("a file of a petabyte is mapped")
	}
}

// TestOpenLongFile reads a history that is large enough for a file.
func TestOpenLongFile(t *testing.T) {
	h := &History{Ops: visits(400_000).Ops, Header: visits(8).Header}
	path := filepath.Join(t.TempDir(), "long.bin")
	if err := h.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Space.Free()
	if len(got.Space.maps) == 0 || len(got.Ops) != len(h.Ops) {
		t.Fatalf("%d operations in %d files, want %d and some", len(got.Ops), len(got.Space.maps), len(h.Ops))
	}
	for i := range h.Ops {
		if got.Ops[i] != h.Ops[i] {
			t.Fatalf("operation %d is %+v, want %+v", i, got.Ops[i], h.Ops[i])
		}
	}
}
