package human

import (
	"errors"
	"os"
)

// least is the free space in bytes that a directory must have, at the minimum. A run needs more.
const least = 64 << 10

// Writable returns an error if no file can be created in a directory, for example because the disk is full.
func Writable(dir string) error {
	f, err := os.CreateTemp(dir, ".hammerlock-*")
	if err != nil {
		return errors.Unwrap(err)
	}
	_, err = f.Write(make([]byte, least))
	if err != nil {
		err = errors.Unwrap(err)
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
