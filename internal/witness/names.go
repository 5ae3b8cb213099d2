package witness

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Limits of the names in a header, whose size is limited: number of names, and characters of a name.
const (
	mostNames  = 1000
	nameLength = 100
)

// pageNames returns the names of the locks with the lowest numbers.
func pageNames[K comparable](numbers map[K]int32, name func(K) string) []string {
	all := make([]string, min(len(numbers), mostNames))
	for k, n := range numbers {
		if int(n) < len(all) {
			text := name(k)
			if quoted := strconv.Quote(text); len(quoted) != len(text)+2 { // a key may have any bytes
				text = quoted
			}
			all[n] = cut(text, nameLength)
		}
	}
	return all
}

// short quotes a token, or its beginning.
func short(token string) string { return strconv.Quote(cut(token, 12)) }

// cut returns the first characters of a text, and marks that some are missing.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return fmt.Sprintf("%.*s…", most, text)
}
