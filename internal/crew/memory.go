package crew

import (
	"bytes"
	"fmt"
	"os"
)

// Resident returns the memory of this process in bytes, without mapped files; 0 if unknown.
func Resident() int64 {
	text, _ := os.ReadFile("/proc/self/statm") // an error does not matter: only Linux has this file
	var all, resident, shared int64
	_, _ = fmt.Sscan(string(text), &all, &resident, &shared)
	return (resident - shared) * int64(os.Getpagesize())
}

// Free returns the number of bytes that programs can still allocate; 0 if unknown. See proc_meminfo(5).
func Free() (n int64) {
	text, _ := os.ReadFile("/proc/meminfo")
	if _, rest, found := bytes.Cut(text, []byte("MemAvailable:")); found {
		_, _ = fmt.Sscan(string(rest), &n)
	}
	return n << 10
}
