package workload

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestATraceIsRead(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		text string
		want []time.Duration
		err  string
	}{
		"offsets":    {"0.25\n0.25\n\n# a comment\n1\n", []time.Duration{250 * ms, 250 * ms, 1000 * ms}, ""},
		"a table":    {"due,page,user\n0.1,7,a\n0.3,8,b\n", []time.Duration{100 * ms, 300 * ms}, ""},
		"since 1970": {"1763841600.5\n1763841600.75\n", []time.Duration{0, 250 * ms}, ""},
		"RFC 3339":   {"2026-01-31T12:00:00Z\n2026-01-31T13:00:00.5+01:00\n", []time.Duration{0, 500 * ms}, ""},
		"of a log":   {"2026-01-31 12:00:00.1\tGET\n2026-01-31 12:00:01\tGET\n", []time.Duration{0, 900 * ms}, ""},
		"bad lines": {
			"0\nsoon\n2\n1\n-3\n", nil,
			`line 2: "soon" is neither .*; line 4: "1" is before the line above it; line 5: "-3" is neither`,
		},
		"many bad ones": {"0\n" + strings.Repeat("x\n", 9), nil, "line 6: .*; and 4 lines more"},
		"two heads":     {"due\nat\n1\n", []time.Duration{1000 * ms}, ""},
		"empty":         {"# nothing\n", nil, "there is no time in it"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trace.csv")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadTrace(path)
			if !slices.Equal(got, c.want) || (err != nil) != (c.err != "") {
				t.Fatalf("got %v, %v; want %v, %q", got, err, c.want, c.err)
			}
			at := 0
			for part := range strings.SplitSeq(c.err, ".*") {
				if err == nil {
					break
				}
				found := strings.Index(err.Error()[at:], part)
				if found < 0 {
					t.Fatalf("got %v, want %q", err, c.err)
				}
				at += found + len(part)
			}
		})
	}
}
