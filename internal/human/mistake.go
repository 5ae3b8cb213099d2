package human

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is an error in a user's settings. The command line adds where the setting was made: in a plan's file or a
// variable.
type Mistake struct {
	Setting string // the name of a flag or of a list in a plan's file; empty: no single setting is wrong
	Item    string // the wrong item, if the setting is a list; empty: all, or none in particular
	Key     string // the item's wrong setting, if items have settings
	Text    string // the whole message
}

// Wrong returns a mistake in a setting. Its text is the flag and the formatted text, with a blank in between unless the
// formatted text begins with a colon or a comma.
func Wrong(setting, format string, args ...any) Mistake {
	text := fmt.Sprintf(format, args...)
	switch {
	case setting == "":
	case strings.HasPrefix(text, ":"), strings.HasPrefix(text, ","):
		text = "--" + setting + text
	default:
		text = "--" + setting + " " + text
	}
	return Mistake{Setting: setting, Text: text}
}

// In returns the mistake with the item of the setting that is wrong, and the key in that item.
func (m Mistake) In(item, key string) Mistake {
	m.Item, m.Key = item, key
	return m
}

// Mistakes are all mistakes found before a start.
type Mistakes []Mistake

// Add adds the mistakes that are new.
func (all *Mistakes) Add(more ...Mistake) {
	for _, m := range more {
		if !slices.ContainsFunc(*all, func(known Mistake) bool { return known.Text == m.Text }) {
			*all = append(*all, m)
		}
	}
}

// String returns the mistakes, each on its own line.
func (all Mistakes) String() string {
	return strings.Join(Names(all, func(m Mistake) string { return m.Text }), "\n")
}
