package human

import (
	"errors"
	"os"
)

// least is how many bytes a directory must have room for: a run's record and its verdicts take more.
const least = 64 << 10

// Writable returns an error if no file can be written in a directory, be it for want of room.
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
