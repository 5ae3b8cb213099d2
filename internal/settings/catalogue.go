package settings

import (
	"errors"
	"slices"
	"strings"

	"hammerlock/internal/human"
)

// Catalogue lists the values of a flag, by name.
type Catalogue[T any] struct {
	All  []T
	Name func(T) string
	// Own reads what is in no catalogue; nil = there is nothing else. It is false if the text is a name.
	Own func(text string) (t T, is bool, err error)
	// Join puts together what a list was split into although it is one item; nil = an item has no comma.
	Join func(parts []string) []string
	// Groups are names that stand for several of them in a list; nil = there are none.
	Groups map[string]func(T) bool
}

// Names are those of all values.
func (c Catalogue[T]) Names() []string { return human.Names(c.All, c.Name) }

// String lists them.
func (c Catalogue[T]) String() string { return strings.Join(c.Names(), ", ") }

// Find returns what has the name, or an error that names what there is.
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

// Words is a catalogue of names alone.
func Words[T ~string](all ...T) Catalogue[T] {
	return Catalogue[T]{All: all, Name: func(t T) string { return string(t) }}
}
