//go:build !linux

package history

import (
	"errors"
	"os"
)

// SpaceFree is how many bytes of disk there are for the files of a Space: none are used.
func SpaceFree() int64 { return 0 }

// reserveDisk gives a file its size, and room for it on the disk, where that can be asked for.
func reserveDisk(*os.File, int64) error { return errors.ErrUnsupported }
