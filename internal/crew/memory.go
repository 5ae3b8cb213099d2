package crew

import (
	"bytes"
	"fmt"
	"os"
)

// Resident is how many bytes of memory this process has for itself, without what lies in files, too; 0 where that is
// not known.
func Resident() int64 {
	text, _ := os.ReadFile("/proc/self/statm") // not every system has it
	var all, resident, shared int64
	_, _ = fmt.Sscan(string(text), &all, &resident, &shared)
	return (resident - shared) * int64(os.Getpagesize())
}

// Free is how many bytes of memory programs can still take; 0 where that is not known. See proc_meminfo(5).
func Free() (n int64) {
	text, _ := os.ReadFile("/proc/meminfo")
	if _, rest, found := bytes.Cut(text, []byte("MemAvailable:")); found {
		_, _ = fmt.Sscan(string(rest), &n)
	}
	return n << 10
}
