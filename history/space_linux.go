package history

import (
	"os"
	"syscall"
)

// SpaceFree is the free disk space in bytes for the files of a Space; 0 if unknown.
func SpaceFree() int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(SpaceDir(), &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// reserveDisk sets a file's size and allocates its disk space.
func reserveDisk(f *os.File, size int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, size) }
