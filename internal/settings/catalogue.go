package settings

import (
	"errors"
	"slices"
	"strings"

	"hammerlock/internal/human"
)

// Catalogue lists the possible values of a flag by name.
type Catalogue[T any] struct {
	All  []T
	Name func(T) string
	// Own parses texts that are no names; is=false means that the text is a name. Nil = there are only names.
	Own func(text string) (t T, is bool, err error)
	// Join rejoins parts that a comma inside an item has separated; nil = items have no comma.
	Join func(parts []string) []string
	// Groups maps a name to the values that it stands for in a list; nil = no groups.
	Groups map[string]func(T) bool
}

// Names are the names of all values.
func (c Catalogue[T]) Names() []string { return human.Names(c.All, c.Name) }

// String lists the names.
func (c Catalogue[T]) String() string { return strings.Join(c.Names(), ", ") }

// Find returns the value with that name, or an error that lists the names.
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

// Words is a catalogue whose values are their own names.
func Words[T ~string](all ...T) Catalogue[T] {
	return Catalogue[T]{All: all, Name: func(t T) string { return string(t) }}
}
