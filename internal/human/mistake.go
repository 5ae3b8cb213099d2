package human

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is something wrong with what a user has set. The command line says where it was set: in a plan's file,
// or a variable.
type Mistake struct {
	Setting string // the name of a flag, or of a list in a plan's file; empty: no setting alone is wrong
	Item    string // the one that is wrong, where the setting is a list; empty: all, or none in particular
	Key     string // what is wrong with the item, where items have settings of their own
	Text    string // all that is said
}

// Wrong is a mistake in a setting: its text begins with the flag, and goes on with the format, after a blank unless
// that begins with a colon. Without a setting the format is all of it.
func Wrong(setting, format string, args ...any) Mistake {
	text := fmt.Sprintf(format, args...)
	switch {
	case setting == "":
	case strings.HasPrefix(text, ":"):
		text = "--" + setting + text
	default:
		text = "--" + setting + " " + text
	}
	return Mistake{Setting: setting, Text: text}
}

// In says in which item of the setting it is, and with which of the item's settings.
func (m Mistake) In(item, key string) Mistake {
	m.Item, m.Key = item, key
	return m
}

// Mistakes are all that are found before anything is started.
type Mistakes []Mistake

// Add adds those that are not known yet.
func (all *Mistakes) Add(more ...Mistake) {
	for _, m := range more {
		if !slices.ContainsFunc(*all, func(known Mistake) bool { return known.Text == m.Text }) {
			*all = append(*all, m)
		}
	}
}

// String has one a line.
func (all Mistakes) String() string {
	return strings.Join(Names(all, func(m Mistake) string { return m.Text }), "\n")
}
