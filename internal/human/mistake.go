package human

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is an error in the settings of a user. The command line adds where the user set the value.
type Mistake struct {
	Setting string // name of the flag, or of the list in a plan's file; empty = no single setting is wrong
	Item    string // the wrong item of a list; empty = the setting is no list, or no single item is wrong
	Key     string // the wrong key of the item, if items have keys; empty otherwise
	Text    string // the whole message
}

// Wrong returns a mistake in a setting. The message is the name of the flag, a space, and the formatted text. The
// space is left out before a colon or a comma.
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

// In returns a copy of the mistake, for an item of the setting and for a key of the item.
func (m Mistake) In(item, key string) Mistake {
	m.Item, m.Key = item, key
	return m
}

// Mistakes is a list of mistakes, which are reported together.
type Mistakes []Mistake

// Add adds mistakes, except for those whose text is already in the list.
func (all *Mistakes) Add(more ...Mistake) {
	for _, m := range more {
		if !slices.ContainsFunc(*all, func(known Mistake) bool { return known.Text == m.Text }) {
			*all = append(*all, m)
		}
	}
}

// String returns the messages, one on each line.
func (all Mistakes) String() string {
	return strings.Join(Names(all, func(m Mistake) string { return m.Text }), "\n")
}
