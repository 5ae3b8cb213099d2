package human

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 1234567: "1.23 ms", 999_600: "1.00 ms", 999_400: "999 µs",
		12345 * time.Microsecond: "12.3 ms", 999_700 * time.Microsecond: "1.00 s", 90 * time.Second: "90.0 s",
		time.Hour: "3600 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d: got %q, want %q", int64(d), got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.5: "0.500", 999.4: "999", 1234.5: "1 234", 12345678: "12 345 678",
		-1234: "-1 234", -0.25: "-0.250"} {
		if got := Number(x); got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
	if got := NumberBeside(1234.4, 1234); got != "1 234.4" {
		t.Errorf("beside 1 234: got %q", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567", -1234: "-1 234"} {
		if got := Count(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

// TestWrappedStaysWithinItsWidth: text is wrapped by columns, not bytes, and further rows are indented.
func TestWrappedStaysWithinItsWidth(t *testing.T) {
	var b bytes.Buffer
	p := &Printer{W: &b}
	p.Fact("LABEL", strings.Repeat("µµµµ ", 40))
	rows := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "LABEL         µ") ||
		!strings.HasPrefix(rows[1], strings.Repeat(" ", 14)+"µ") {
		t.Errorf("got %q", rows)
	}
	for _, row := range rows {
		if n := len([]rune(row)); n > Width || strings.HasSuffix(row, " ") {
			t.Errorf("%d columns: %q", n, row)
		}
	}
}

func TestANumberStaysOnItsLine(t *testing.T) {
	got := Wrap("it took 12 345 678 holds and 1.25 ms or 98 % of it", 11)
	want := []string{"it took", "12 345 678", "holds and", "1.25 ms or", "98 % of it"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Wrap("one\n  two", 40); len(got) != 1 || got[0] != "one two" {
		t.Errorf("lines of its own: got %q", got)
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) { b.writes++; return 0, errors.New("full") }

func TestPrinterStopsAtTheFirstError(t *testing.T) {
	b := &broken{}
	p := Printer{W: b}
	p.Line("one")
	p.Line("two")
	if p.Err == nil || b.writes != 1 {
		t.Errorf("%d writes, error %v", b.writes, p.Err)
	}
}

// TestTableStaysWithinItsWidth: columns without room go to a further table with the names, and no cell is lost.
func TestTableStaysWithinItsWidth(t *testing.T) {
	long := strings.Repeat("µ", 40)
	rows := [][]string{{"lock", "a", "b", "c"}, {"lease", long, "2", long}, {"fair", "1", long, "3"}}
	var out strings.Builder
	p := Printer{W: &out}
	p.Table(rows, 1)
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > Width || strings.HasSuffix(line, " \n") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	want := "lock" + strings.Repeat(" ", 3) + "a"
	if text := out.String(); p.Err != nil || !strings.HasPrefix(text, want) || strings.Count(text, "lease  ") != 2 ||
		strings.Count(text, long) != 3 || strings.Count(text, "\n\n") != 1 {
		t.Errorf("%v:\n%s", p.Err, text)
	}
	FlushRight(rows, 2)
	if rows[1][2] != strings.Repeat(" ", 39)+"2" || rows[2][2] != long {
		t.Errorf("flushed right: %q", rows)
	}
}
