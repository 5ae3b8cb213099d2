package history

import (
	"bufio"
	"cmp"
	"io"
	"io/fs"
	"slices"
)

// buffered returns r with a buffer that has room for any chunk or line. It also returns the number of bytes to
// read; 0 if unknown.
func buffered(r io.Reader) (*bufio.Reader, int64) {
	var size int64
	room := maxLine
	switch r := r.(type) {
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	case interface{ Len() int }:
		size = int64(r.Len())
		room = min(room, r.Len()+headSize) // unlike a file, it cannot grow during the read
	}
	return bufio.NewReaderSize(r, room), size
}

// reserve makes room for all operations of a file. It estimates their number from the operations in the first part
// of the file. The argument size is the length of the file in bytes, and read is the length of this part.
func reserve(space *Space, ops []Op, size, read int64) []Op {
	more := (size - read) * int64(len(ops)) / max(read, 1) * 33 / 32
	return Reserve(space, ops, int(max(0, more)))
}

// byReturn orders operations by return, then by call: one worker may have made two operations with the same return.
func byReturn(a, b Op) int {
	return cmp.Or(cmp.Compare(a.Return, b.Return), cmp.Compare(a.Call, b.Call))
}

// sortOps sorts operations by return. If lines is not nil, it moves the elements of lines in the same way.
func sortOps(ops []Op, lines []int32) {
	if slices.IsSortedFunc(ops, byReturn) {
		return
	}
	if lines == nil {
		slices.SortStableFunc(ops, byReturn)
		return
	}
	order := make([]int32, len(ops))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return byReturn(ops[a], ops[b]) })
	oldOps, oldLines := slices.Clone(ops), slices.Clone(lines)
	for i, from := range order {
		ops[i], lines[i] = oldOps[from], oldLines[from]
	}
}
