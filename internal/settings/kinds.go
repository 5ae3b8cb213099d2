package settings

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hammerlock/internal/human"
)

// Add declares a flag. The argument kind names the type of its value in the help, and the argument preset is the
// default. The function set parses a value.
func (s *Set) Add(f Flag, kind, preset string, set func(string) error) *Value {
	v := s.declare(f, kind, preset, set)
	s.inSection(s.Flags.VarPF(v, f.Name, "", f.Usage))
	return v
}

func (s *Set) declare(f Flag, kind, preset string, set func(string) error) *Value {
	v := &Value{Part: f.Part, Kind: kind, Text: preset}
	v.set = func(text string) {
		if v.List() && len(v.Given) > 0 {
			s.Mistake(f.Name, ": it is given twice; one list has commas, as in --%s %s,%s", f.Name, v.Given[0], text)
			return
		}
		if err := set(text); err != nil {
			s.Mistakes.Add(human.Wrong(f.Name, "%q: %v", text, err).In(text, ""))
			return
		}
		v.Text, v.Given = text, append(v.Given, text)
	}
	return v
}

// Toggle declares a boolean flag, which can be given without a value. The argument letter is its short form; empty =
// none.
func (s *Set) Toggle(f Flag, letter string, to *bool) *pflag.Flag {
	v := s.declare(f, "bool", strconv.FormatBool(*to), func(text string) error {
		is, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("true or false")
		}
		*to = is
		return nil
	})
	toggle := s.inSection(s.Flags.VarPF(v, f.Name, letter, f.Usage))
	toggle.NoOptDefVal = "true"
	return toggle
}

// Duration declares a flag for a duration.
func (s *Set) Duration(f Flag, to *time.Duration) {
	s.Add(f, "duration", to.String(), func(text string) error {
		d, err := ReadDuration(text)
		if err == nil {
			*to = d
		}
		return err
	})
}

// Integer declares a flag for an integer from 1 to most. If the argument most is 0, Integer accepts any integer, and
// a later check of the plan limits it.
func (s *Set) Integer(f Flag, to *int, most int) {
	preset := *to
	s.Add(f, "n", strconv.Itoa(preset), func(text string) error {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			return fmt.Errorf("a whole number, as in %d", max(preset, 1))
		case most > 0 && (n < 1 || n > most):
			return fmt.Errorf("from 1 to %d", most)
		}
		*to = n
		return nil
	})
}

// Text declares a flag for a text, which must not be empty.
func (s *Set) Text(f Flag, kind string, to *string) *Value {
	return s.text(f, kind, to, func(string) error { return nil })
}

// Written declares a flag for an output file. It reports a file that cannot be written as soon as the flag is set.
func (s *Set) Written(f Flag, to *string) { s.text(f, "file", to, Writable) }

var errDirectory = errors.New("it is a directory, and a file is needed")

// Writable returns an error if the file cannot be written.
func Writable(path string) error {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return errDirectory
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return errors.Unwrap(err)
		}
		if err := file.Close(); err != nil || !info.Mode().IsRegular() { // a device needs no free disk space
			return err
		}
	}
	dir := filepath.Dir(path)
	if err := human.Writable(dir); err != nil {
		return fmt.Errorf("it cannot be written in the directory %s: %w", dir, err)
	}
	return nil
}

func (s *Set) text(f Flag, kind string, to *string, check func(string) error) *Value {
	return s.Add(f, kind, *to, func(text string) error {
		if text == "" { // for example, a script used an unset variable
			return fmt.Errorf("it is empty: it takes a %s; or leave it out", kind)
		}
		if info, err := os.Stat(text); kind == "file" && err == nil && info.IsDir() {
			return errDirectory
		}
		if err := check(text); err != nil {
			return err
		}
		*to = text
		return nil
	})
}

// Names declares a flag for a list of names, separated by commas. The argument offered is for completion; other names
// are accepted, too.
func (s *Set) Names(f Flag, to *[]string, offered []string) {
	s.Add(f, "name,...", strings.Join(*to, ","), func(text string) error {
		if *to = Split(text); len(*to) == 0 {
			return errors.New("no name: " + human.Instead("", offered))
		}
		return nil
	}).Complete = CompleteList(offered, false)
}

// One declares a flag for one value of a catalogue.
func One[T any](s *Set, f Flag, to *T, from Catalogue[T]) {
	v := s.Add(f, "name", from.Name(*to), func(text string) error {
		t, err := from.Find(text)
		if err == nil {
			*to = t
		}
		return err
	})
	v.Complete, v.Enum = CompleteList(from.Names(), false), from.Names()
}

// Some declares a flag for a list of values of a catalogue, separated by commas.
func Some[T any](s *Set, f Flag, to *[]T, from Catalogue[T]) {
	v := s.Add(f, "name,...", strings.Join(Catalogue[T]{All: *to, Name: from.Name}.Names(), ","),
		func(text string) error {
			*to = nil
			named := func(list []T, t T) bool {
				return slices.ContainsFunc(list, func(other T) bool { return from.Name(other) == from.Name(t) })
			}
			parts := Split(text)
			if from.Join != nil {
				parts = from.Join(parts)
			}
			for _, name := range parts {
				if in := from.Groups[name]; in != nil {
					for _, t := range from.All {
						if in(t) && !named(*to, t) {
							*to = append(*to, t)
						}
					}
					continue
				}
				t, err := from.Find(name)
				if blanks := strings.Fields(name); err != nil && len(blanks) > 1 &&
					slices.Contains(from.Names(), blanks[0]) {
					err = fmt.Errorf("names have commas in between: %s", strings.Join(blanks, ","))
				}
				if err == nil && named(*to, t) {
					err = errors.New("it is named twice; --count 2 runs everything twice")
				}
				if err != nil {
					s.Mistakes.Add(human.Wrong(f.Name, "%q: %v", name, err).In(name, ""))
					continue
				}
				*to = append(*to, t)
			}
			if len(parts) == 0 {
				return errors.New("no name: " + human.Instead("", from.Names()))
			}
			return nil
		})
	v.Complete, v.Enum = CompleteList(from.Names(), false), from.Names()
}

// Split splits a list at commas. It drops empty items, and spaces around items.
func Split(text string) (list []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// Rate declares a flag for a number of visits per second.
func (s *Set) Rate(f Flag, to *float64) {
	preset := ""
	if *to > 0 {
		preset = PerSecondText(*to)
	}
	s.Add(f, "n/s", preset, func(text string) error {
		n, err := PerSecond(text)
		if err != nil {
			return fmt.Errorf("more than 0 %w", err)
		}
		if n <= 0 {
			return errors.New("more than 0 visits a second, as in 1000/s")
		}
		*to = n
		return nil
	})
}

// Share declares a flag for a percentage. The function good tells whether a percentage is acceptable. The argument
// wrong is the text of the error if it is not.
func (s *Set) Share(f Flag, kind string, to *float64, wrong string, good func(float64) bool) {
	preset := ""
	if good(100 * *to) {
		preset = strconv.FormatFloat(100**to, 'f', -1, 64) + "%"
	}
	s.Add(f, kind, preset, func(text string) error {
		number, percent := strings.CutSuffix(text, "%")
		n, err := strconv.ParseFloat(number, 64)
		switch {
		case err == nil && !percent:
			return fmt.Errorf("%s; the %% is missing, as in 80%%", wrong)
		case err != nil || !good(n) || n > 100:
			return errors.New(wrong)
		}
		*to = n / 100
		return nil
	})
}

// PerSecond parses a rate such as "1000/s" or "1000".
func PerSecond(text string) (float64, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), "/")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || unit != "" && unit != "s" || !(n >= 0) {
		digits := strings.TrimRight(number, "abcdefghijklmnopqrstuvwxyz ") // 100rps, 100 per sec
		if _, err := strconv.ParseFloat(digits, 64); err == nil && digits != number {
			return 0, fmt.Errorf("visits a second, as in 1000/s; did you mean %s/s?", digits)
		}
		return 0, errors.New("visits a second, as in 1000/s")
	}
	return n, nil
}

// PerSecondText formats a rate in the form that PerSecond parses.
func PerSecondText(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) + "/s" }

// wellFormed matches durations with correct syntax. ParseDuration rejects such a text only if the value is too large.
var wellFormed = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// ReadDuration parses a duration. If the unit is missing or misspelt, the error suggests one.
func ReadDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if wellFormed.MatchString(text) {
		return 0, fmt.Errorf("too long: at most %s", time.Duration(math.MaxInt64).Truncate(time.Hour))
	}
	plain := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	number := strings.TrimRight(plain, "abcdefghijklmnopqrstuvwxyz")
	unit := cmp.Or(plain[len(number):], "s")
	meant := ""
	for _, unit := range []string{unit[:min(2, len(unit))], unit[:1]} { // msec, sec
		if _, err := time.ParseDuration(number + unit); err == nil && meant == "" {
			meant = "; did you mean " + number + unit + "?"
		}
	}
	return 0, errors.New("a duration has a unit, as in 500ms, 10s or 1m30s" + meant)
}
