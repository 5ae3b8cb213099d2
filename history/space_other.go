//go:build !linux

package history

import (
	"errors"
	"os"
)

// SpaceFree is 0: this system uses no files for a Space.
func SpaceFree() int64 { return 0 }

func reserveDisk(*os.File, int64) error { return errors.ErrUnsupported }
