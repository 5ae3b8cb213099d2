package human

import (
	"fmt"
	"slices"
	"strings"
)

// fewNames is the number of names up to which a list is printed completely.
const fewNames = 20

// Instead returns the end of an error about an unknown name: the names that exist, and the one that the user probably
// meant. A long list is cut, and refers to --list.
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

// Names returns the name of each element of a list.
func Names[T any](all []T, name func(T) string) (names []string) {
	for _, t := range all {
		names = append(names, name(t))
	}
	return names
}

// Meant returns a hint such as "; did you mean lease?". It is empty if no name in good is similar.
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

// otherWord tells whether two short words of equal length have different letters, such as "none" and "nope". Then
// neither is a misspelling of the other.
func otherWord(a, b string) bool {
	const short = 4
	letters := func(s string) []byte { return slices.Sorted(slices.Values([]byte(s))) }
	return a != b && len(a) == len(b) && len(a) <= short && !slices.Equal(letters(a), letters(b))
}

// distance returns how many letters must be inserted, deleted, replaced or swapped with a neighbour to make one word
// the other (Damerau 1964).
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
