package settings

import (
	"errors"
	"slices"
	"strings"

	"hammerlock/internal/human"
)

// Catalogue lists the values that a flag accepts, and their names.
type Catalogue[T any] struct {
	All  []T
	Name func(T) string
	// Own parses values that are not names. It returns is = false for a text that must be a name. It may be nil.
	Own func(text string) (t T, is bool, err error)
	// Join puts items together again that were split at a comma inside of an item; nil = items never contain a comma.
	Join func(parts []string) []string
	// Groups maps the name of a group to a function that returns true for the values in the group; nil = no groups.
	Groups map[string]func(T) bool
}

// Names returns the names of all values.
func (c Catalogue[T]) Names() []string { return human.Names(c.All, c.Name) }

// String lists the names.
func (c Catalogue[T]) String() string { return strings.Join(c.Names(), ", ") }

// Find returns the value with the name. If there is no such value, the error lists the names.
func (c Catalogue[T]) Find(name string) (t T, err error) {
	if c.Own != nil {
		if t, is, err := c.Own(name); is {
			return t, err
		}
	}
	if i := slices.Index(c.Names(), name); i >= 0 {
		return c.All[i], nil
	}
	return t, errors.New(human.Instead(name, c.Names()))
}

// Words returns a Catalogue of texts, each of which is its own name.
func Words[T ~string](all ...T) Catalogue[T] {
	return Catalogue[T]{All: all, Name: func(t T) string { return string(t) }}
}
