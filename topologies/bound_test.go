package topologies

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestAnAnnouncedSizeIsBounded parses replies as a whole, and byte by byte.
func TestAnAnnouncedSizeIsBounded(t *testing.T) {
	const text = "$12\r\n*2147483648\r\r\n" // the array is only the text of a string
	for answers, much := range map[string]bool{
		"+OK\r\n:2147483648\r\n-ERR 2147483648\r\n_\r\n$-1\r\n*-1\r\n": false,
		strings.Repeat(text, 3):                false,
		"$2147483648\r\n":                      true,
		"*2147483648\r\n":                      true,
		"%2147483647\r\n":                      true,
		"=9223372036854775807\r\nabc":          true,
		text + "*1000000\r\n" + "*1000000\r\n": true,
		strings.Repeat("*1000\r\n"+strings.Repeat(":1\r\n", 1000), 2000):         false,
		strings.Repeat("*1\r\n$40000000\r\n"+strings.Repeat(" ", 4e7+2), 2):      false,
		"*2\r\n" + strings.Repeat("$40000000\r\n"+strings.Repeat(" ", 4e7+2), 2): true,
		"%1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:2\r\n$2\r\n$9\r\n*1000000\r\n":           false,
		"+" + strings.Repeat("x", mostLine):                                      true,
	} {
		parts := []int{1, 7, len(answers)}
		if len(answers) > 1<<22 {
			parts[0], parts[1] = 997, 4096
		}
		for _, each := range parts {
			var b bound
			var err error
			for part := range slices.Chunk([]byte(answers), each) {
				if err = b.take(part); err != nil {
					break
				}
			}
			if errors.Is(err, errTooMuch) != much {
				t.Errorf("%.40q, %d bytes at a time: got %v", answers, each, err)
			}
			if whole := !strings.HasSuffix(answers, "*1000000\r\n"); err == nil && whole && b.due+b.skip != 0 {
				t.Errorf("%.40q, %d bytes at a time: %d elements and %d bytes are still to come", answers, each, b.due,
					b.skip)
			}
		}
	}
}
