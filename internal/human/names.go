package human

import (
	"fmt"
	"slices"
	"strings"
)

// fewNames is the longest list of names to print in full.
const fewNames = 20

// Instead returns the answer to an unknown name: the existing names, and the name that was probably meant. A long list
// is cut, with a hint to --list.
func Instead(name string, good []string) string {
	meant := Meant(name, good)
	switch {
	case len(good) <= fewNames:
		return "there is " + strings.Join(good, ", ") + meant
	case meant != "":
		return "no such name" + meant
	}
	return fmt.Sprintf("there is %s and %d more: --list has all", strings.Join(good[:5], ", "), len(good)-5)
}

// Names returns the name of each element.
func Names[T any](all []T, name func(T) string) (names []string) {
	for _, t := range all {
		names = append(names, name(t))
	}
	return names
}

// Meant returns a hint such as "; did you mean lease?", or nothing if no name is similar.
func Meant(name string, good []string) string {
	best, least := "", min(2, (len(name)+1)/3)+1
	name = strings.ToLower(name)
	for _, g := range good {
		switch d := distance(name, strings.ToLower(g)); {
		case d < least && !otherWord(name, strings.ToLower(g)):
			best, least = g, d
		case best == "" && len(name) > 2 && strings.HasPrefix(strings.ToLower(g), name):
			best = g
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// otherWord reports whether two short names of equal length differ in a letter, such as none and nope: neither is a
// typo.
func otherWord(a, b string) bool {
	const short = 4
	letters := func(s string) []byte { return slices.Sorted(slices.Values([]byte(s))) }
	return a != b && len(a) == len(b) && len(a) <= short && !slices.Equal(letters(a), letters(b))
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours between two words (Damerau
// 1964).
func distance(a, b string) int {
	row, last := make([]int, len(b)+1), []int(nil)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := last
		last = slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
