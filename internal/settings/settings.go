// Package settings is the table of a command's settings. Each setting is declared once. The declaration defines its
// flag, its environment variable, its key and schema in a plan's file, its completion, and its row of help. Wrong
// values are collected as mistakes with their places.
package settings

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/human"
)

// Set has the settings of a command.
type Set struct {
	Flags    *pflag.FlagSet
	Mistakes human.Mistakes
	File     string // a plan in YAML; empty = none
	Unread   bool   // File could not be read
	// Lists has the keys of the file that are not flags. Settle sets the value of each key that it finds in the file.
	Lists map[string]*yaml.Node
	// Hide removes the secrets from a setting's value; nil = there are none.
	Hide func(setting, text string) string
	// Origins maps each flag to the origin of its value. Places has the places of items and keys in the file. Settle
	// fills in both.
	Origins map[string]string
	Places  map[human.Mistake]string

	section string // section of new flags
}

// New is an empty set.
func New() Set {
	s := Set{Flags: &pflag.FlagSet{SortFlags: false}, Origins: map[string]string{}, Places: map[human.Mistake]string{}}
	s.Flags.SetNormalizeFunc(Normal)
	return s
}

// Of is the set of a command. It shows flags in the order of their declaration.
func Of(c *cobra.Command) Set {
	c.Flags().SortFlags = false
	c.Flags().SetNormalizeFunc(Normal)
	return Set{Flags: c.Flags()}
}

// Name has the names of a setting: the flag, which is also the key in plans; its former name; and the name in JSON,
// which stays.
type Name struct{ Flag, Before, JSON string }

// Names lists the settings whose names differ. The former name of a flag is still accepted.
var Names = []Name{{"lease", "ttl", "ttl_ns"}, {"backoff", "retry", "retry_ns"}, {"pages", "keys", "keys"},
	{"patience", "wait", "wait_ns"}}

// Current is today's name of a flag.
func Current(name string) string {
	if i := slices.IndexFunc(Names, func(n Name) bool { return n.Before == name }); i >= 0 {
		return Names[i].Flag
	}
	return name
}

// Before replaces flags by their former names, which every build knows.
func Before(args []string) []string {
	for _, n := range Names {
		if i := slices.Index(args, "--"+n.Flag); i >= 0 {
			args[i] = "--" + n.Before
		}
	}
	return args
}

// aliases are the names of a flag; the last one has priority.
func aliases(flag string) (names []string) {
	for _, n := range Names {
		if n.Flag == flag {
			names = append(names, n.Before)
		}
	}
	return append(names, flag)
}

// Normal returns the current name of a flag, so that the flag is known by all of its names.
func Normal(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(Current(name))
}

// Mistake collects a mistake, so that all are reported at once.
func (s *Set) Mistake(setting, format string, args ...any) {
	s.Mistakes.Add(human.Wrong(setting, format, args...))
}

// Clash reports a mistake for each of the flags that was given.
func (s *Set) Clash(names []string, why string) {
	for _, name := range names {
		if f := s.Flags.Lookup(name); f != nil && f.Changed {
			s.Mistake(name, "%s", why)
		}
	}
}

// Differs reports whether a flag was set to another value than its default. A resolved plan sets every flag.
func (s *Set) Differs(name string) bool {
	f := s.Flags.Lookup(name)
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// Part is the part of a command that a flag belongs to. The command defines its parts; zero is the command itself.
type Part int

// Flag has the common fields of a flag's declaration.
type Flag struct {
	Part  Part
	Name  string
	Usage string
}

// Value is the value of a flag. Its Set never fails, because pflag would stop there; it collects mistakes instead.
type Value struct {
	Part            Part
	Kind            string // type of value in a word; for a comma-separated list it ends in ",..."
	Text            string
	Complete        cobra.CompletionFunc
	Enum            []string // all possible values; nil = there are others
	Repeatable      bool     // it may be given several times
	CommandLineOnly bool     // neither a variable nor a plan can set it
	// In a plan's file the value can be more than text: Nodes parses it and reports mistakes, Object is its schema.
	// Nil = it cannot.
	Nodes  func(*yaml.Node) []Item
	Object func() map[string]any
	Given  []string // the values that were given

	set func(string)
}

// ValueOf is the value of a flag; nil for flags of cobra.
func ValueOf(f *pflag.Flag) *Value {
	if f == nil {
		return nil
	}
	v, _ := f.Value.(*Value)
	return v
}

// Having returns the names of the flags for which the function asked returns true, without cobra's own flags.
func Having(flags *pflag.FlagSet, asked func(*pflag.Flag, *Value) bool) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if v := ValueOf(f); v != nil && asked(f, v) {
			names = append(names, f.Name)
		}
	})
	return names
}

// Value is the value of the named flag; nil if there is none.
func (s *Set) Value(name string) *Value { return ValueOf(s.Flags.Lookup(name)) }

// String, Type and Set implement pflag.Value.
func (v *Value) String() string { return v.Text }

// Type is the kind of value.
func (v *Value) Type() string { return v.Kind }

// Set parses a value.
func (v *Value) Set(text string) error {
	v.set(text)
	return nil
}

// List reports whether the value is a comma-separated list.
func (v *Value) List() bool { return strings.HasSuffix(v.Kind, ",...") }
