package human

import (
	"errors"
	"os"
)

// least is the space in bytes that a directory must have. A run's record and verdicts take more.
const least = 64 << 10

// Writable returns an error if a directory takes no new file, for example on a full disk.
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
