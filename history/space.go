package history

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"
)

// Space allocates long arrays, such as the operations of a history. Small arrays are on the heap. Large ones are in
// mapped files without names, so that the system can write them to disk if memory is needed elsewhere. If such a
// file cannot be made or has no room, the array is on the heap too. The zero Space is ready to use by one goroutine.
type Space struct {
	// Large is the smallest size in bytes of an array in a file; 0 = 32 MiB.
	Large int

	maps [][]byte
}

// defaultLarge is the smallest size in bytes of an array in a file. If a history has such arrays, there are many
// arrays beside them, so these go to files from the size besideLarge on.
const defaultLarge, besideLarge = 32 << 20, 1 << 20

// Beside is a Space for data derived from the arrays in s.
func (s *Space) Beside() Space {
	if s.Large == 0 && len(s.maps) > 0 {
		return Space{Large: besideLarge}
	}
	return Space{Large: s.Large}
}

// Make makes an array of n zeros. T must not contain pointers: the garbage collector does not look into files.
func Make[T any](s *Space, n int) []T {
	if list := inFile[T](s, n); list != nil {
		return list
	}
	return make([]T, n)
}

// inFile makes an array in a file; nil if it is too small or there is no file.
func inFile[T any](s *Space, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if size < s.large() {
		return nil
	}
	memory := s.mapped(size)
	if memory == nil {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
}

// Append adds x to a list of this Space, as append does. The caller must not use the old list any more.
func Append[T any](s *Space, list []T, x T) []T {
	if len(list) == cap(list) {
		list = Reserve(s, list, max(cap(list), 4))
	}
	return append(list, x)
}

// mostInHeap limits how many bytes Reserve takes from the heap for an estimate.
const mostInHeap = 4 << 30

// Reserve makes room for n more elements in a list of this Space, on the heap up to mostInHeap bytes. The caller must
// not use the old list any more.
func Reserve[T any](s *Space, list []T, n int) []T {
	var zero T
	if n <= cap(list)-len(list) {
		return list
	}
	if more := inFile[T](s, len(list)+n); more != nil {
		copy(more, list)
		s.drop(unsafe.Pointer(unsafe.SliceData(list)))
		return more[:len(list)]
	}
	return slices.Grow(list, min(n, mostInHeap/int(unsafe.Sizeof(zero))))
}

// Free unmaps all arrays in files; the caller must not use them any more.
func (s *Space) Free() {
	for _, m := range s.maps {
		_ = syscall.Munmap(m) // it was mapped
	}
	s.maps = nil
}

func (s *Space) large() int {
	if s.Large == 0 {
		return defaultLarge
	}
	return s.Large
}

// drop unmaps the array at an address, if it lies in a file.
func (s *Space) drop(at unsafe.Pointer) {
	if i := slices.IndexFunc(s.maps, func(m []byte) bool { return unsafe.Pointer(unsafe.SliceData(m)) == at }); i >= 0 {
		_ = syscall.Munmap(s.maps[i]) // it was mapped
		s.maps = slices.Delete(s.maps, i, i+1)
	}
}

// mapped maps a file of that size, or returns nil. The disk space is reserved first: a write to a mapped file without
// room would end the process.
func (s *Space) mapped(size int) []byte {
	f, err := Unnamed(SpaceDir())
	if err != nil {
		return nil
	}
	defer f.Close() // the mapping keeps it open
	if size == 0 || reserveDisk(f, int64(size)) != nil {
		return nil
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	s.maps = append(s.maps, m)
	return m
}

// SpaceDir is the directory for the files of a Space: TMPDIR or, without it, /var/tmp, because /tmp may lie in
// memory.
func SpaceDir() string {
	const large = "/var/tmp"
	if _, err := os.Stat(large); os.Getenv("TMPDIR") == "" && err == nil {
		return large
	}
	return os.TempDir()
}

// unnamed is Linux's O_TMPFILE, which opens a file without a name.
const unnamed = 0o20000000 | syscall.O_DIRECTORY

// Unnamed makes a file without a name in a directory: nothing is left of it when its processes are killed. On systems
// without such files it has a name for a moment.
func Unnamed(dir string) (*os.File, error) {
	if runtime.GOOS == "linux" {
		if f, err := os.OpenFile(dir, unnamed|os.O_RDWR, 0o600); err == nil {
			return f, nil
		}
	}
	f, err := os.CreateTemp(dir, "hammerlock-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
