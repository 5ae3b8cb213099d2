package human

import (
	"slices"
	"strings"
)

// Instead answers a name that does not exist with those that do, and with the one that was probably meant.
func Instead(name string, good []string) string {
	return "there is " + strings.Join(good, ", ") + Meant(name, good)
}

// Meant asks for the name that was probably meant, as in "; did you mean lease?". It is empty if none is similar.
func Meant(name string, good []string) string {
	best, least := "", min(2, (len(name)+1)/3)+1
	for _, g := range good {
		switch d := distance(name, g); {
		case d < least:
			best, least = g, d
		case best == "" && len(name) > 2 && strings.HasPrefix(g, name):
			best = g
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is how many letters must be inserted, deleted or replaced to make one word the other (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
		}
	}
	return row[len(b)]
}
