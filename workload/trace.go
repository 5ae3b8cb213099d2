package workload

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// TracePrefix begins a value of Arrivals that names a trace file.
const TracePrefix = "trace:"

// wrongLines is the largest number of invalid lines that an error message lists.
const wrongLines = 5

// epoch is the smallest number in a trace that counts as a Unix time. Smaller numbers are offsets in seconds from
// the start of the run.
const epoch = 1e9

// stamps are the accepted formats of a date in a trace.
var stamps = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}

// ReadTrace reads due times from a file, one on each line, in ascending order. On each line it reads the text before
// the first comma, semicolon or tab. This text is an offset in seconds from the start of the run, or a date (RFC 3339,
// or seconds since 1970). The first date is the start of the run. Empty lines, lines that begin with # and a table
// heading are skipped. The error lists the invalid lines.
func ReadTrace(path string) (due []time.Duration, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var wrong []error
	var first, last float64
	var start time.Time
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if at := strings.IndexAny(text, ",;\t"); at >= 0 {
			text = text[:at]
		}
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		at, err := readDue(text, &start)
		switch {
		case err != nil && len(due)+len(wrong) == 0 && !strings.ContainsAny(text, "0123456789"):
			continue // the line is a table heading
		case len(due) == 0 && at >= epoch && start.IsZero():
			first = at
		}
		at -= first
		if err == nil && (at < last || len(due) == 0 && at < 0) {
			err = fmt.Errorf("%q is before the line above it", text)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		last = at
		due = append(due, time.Duration(math.Round(at*float64(time.Second))))
	}
	if more := len(wrong) - wrongLines; more > 0 {
		wrong = append(wrong[:wrongLines], fmt.Errorf("and %d lines more", more))
	}
	if err := errors.Join(append(wrong, lines.Err())...); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if len(due) == 0 {
		return nil, errors.New("there is no time in it")
	}
	return due, nil
}

// readDue parses one time and returns it in seconds: a number as it stands, or a date as the time since the first
// date of the trace. The argument start holds this first date; readDue sets it.
func readDue(text string, start *time.Time) (float64, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < math.MaxInt64/float64(time.Second) {
		return n, nil
	}
	for _, form := range stamps {
		t, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		if start.IsZero() {
			*start = t
		}
		return t.Sub(*start).Seconds(), nil
	}
	return 0, fmt.Errorf("%q is neither a number of seconds nor a time as in 2026-01-31T12:00:00.5Z", text)
}
