package history

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"
)

// Space is memory for arrays that are as long as a history. Small ones lie in the heap. Large ones lie in a file
// without a name that is mapped, so that the system writes out what others need the memory for: a judge takes disk by
// the length of a history, and memory by what it looks at. Without such a file, or room for it, all lie in the heap.
// The zero Space is ready; it is one goroutine's.
type Space struct {
	// Large is how many bytes an array has at least that lies in a file; 0 = 32 MiB.
	Large int

	maps [][]byte
}

// defaultLarge is worth a file; beside arrays that are, smaller ones are, too: there are many of them.
const defaultLarge, besideLarge = 32 << 20, 1 << 20

// Beside is a Space for what is made of what lies in s.
func (s *Space) Beside() Space {
	if s.Large == 0 && len(s.maps) > 0 {
		return Space{Large: besideLarge}
	}
	return Space{Large: s.Large}
}

// Make makes an array of n zeros. A T has no pointers: no collector looks for them in a file.
func Make[T any](s *Space, n int) []T {
	if list := inFile[T](s, n); list != nil {
		return list
	}
	return make([]T, n)
}

// inFile makes an array in a file, if it is large enough and there is one; else it is nil.
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

// Append adds x to a list of that Space, as append does. The list that was given is gone.
func Append[T any](s *Space, list []T, x T) []T {
	if len(list) == cap(list) {
		list = Reserve(s, list, max(cap(list), 4))
	}
	return append(list, x)
}

// mostInHeap bounds what is reserved in the heap by an estimate.
const mostInHeap = 4 << 30

// Reserve makes room for n more in a list of that Space, or for fewer where they are many and there is no file for
// them. The list that was given is gone.
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

// Free gives all arrays that lie in files back: none may be used any more.
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

// drop gives the array at an address back, if it lies in a file.
func (s *Space) drop(at unsafe.Pointer) {
	if i := slices.IndexFunc(s.maps, func(m []byte) bool { return unsafe.Pointer(unsafe.SliceData(m)) == at }); i >= 0 {
		_ = syscall.Munmap(s.maps[i]) // it was mapped
		s.maps = slices.Delete(s.maps, i, i+1)
	}
}

// mapped maps a file of that size. It is nil without one: memory of a file that has no room for it would end the
// process.
func (s *Space) mapped(size int) []byte {
	f, err := Unnamed(SpaceDir())
	if err != nil {
		return nil
	}
	defer f.Close() // the mapping keeps it
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

// SpaceDir is where the files of a Space lie: TMPDIR or, without it, the directory for what is too large for a /tmp in
// memory.
func SpaceDir() string {
	const large = "/var/tmp"
	if _, err := os.Stat(large); os.Getenv("TMPDIR") == "" && err == nil {
		return large
	}
	return os.TempDir()
}

// unnamed opens a file without a name (O_TMPFILE of Linux).
const unnamed = 0o20000000 | syscall.O_DIRECTORY

// Unnamed makes a file without a name in a directory: nothing is left of it when its processes are killed. If a system
// or a file system has none, it has a name for a moment.
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
