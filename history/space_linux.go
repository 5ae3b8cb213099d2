package history

import (
	"os"
	"syscall"
)

// SpaceFree is how many bytes of disk there are for the files of a Space; 0 where that is not known.
func SpaceFree() int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(SpaceDir(), &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// reserveDisk gives a file its size, and room for it on the disk.
func reserveDisk(f *os.File, size int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, size) }
