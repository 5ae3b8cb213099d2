// Package settings is the table of a command's settings. A setting is declared once: a flag of the command line, a
// variable of the environment, a key of a plan's file, a property of that file's schema, what completion offers and a
// row of help come of it. A wrong value is a mistake, with the place where it was found, and all of them
// are collected.
package settings

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/human"
)

// Set is the settings of a command.
type Set struct {
	Flags    *pflag.FlagSet
	Mistakes human.Mistakes
	File     string // a plan, in YAML; empty = none
	// Lists are keys of the file that are no flags; Settle fills in what it has there.
	Lists map[string]*yaml.Node
	// Hide takes the secrets out of a value of a setting; nil = there are none.
	Hide func(setting, text string) string
	// Origins say where the values of flags that are set come from, by name; Places where items of them, and their
	// keys, are in the file. Settle makes both.
	Origins map[string]string
	Places  map[human.Mistake]string

	section string // of the flags that are declared
}

// New is an empty set.
func New() Set {
	s := Set{Flags: &pflag.FlagSet{SortFlags: false}, Origins: map[string]string{}, Places: map[human.Mistake]string{}}
	s.Flags.SetNormalizeFunc(Normal)
	return s
}

// Of is the set of a command, which shows its flags in the order of their declaration.
func Of(c *cobra.Command) Set {
	c.Flags().SortFlags = false
	c.Flags().SetNormalizeFunc(Normal)
	return Set{Flags: c.Flags()}
}

// Name is what a thing is called on the command line and in plans, was called there before, and is called in JSON,
// whose names stay.
type Name struct{ Flag, Before, JSON string }

// Names are those that differ. A flag may still be called by its name before.
var Names = []Name{{"lease", "ttl", "ttl_ns"}, {"backoff", "retry", "retry_ns"}, {"pages", "keys", "keys"},
	{"patience", "wait", "wait_ns"}}

// Current is a flag's name today.
func Current(name string) string {
	if i := slices.IndexFunc(Names, func(n Name) bool { return n.Before == name }); i >= 0 {
		return Names[i].Flag
	}
	return name
}

// Before gives flags their names before, which every build knows.
func Before(args []string) []string {
	for _, n := range Names {
		if i := slices.Index(args, "--"+n.Flag); i >= 0 {
			args[i] = "--" + n.Before
		}
	}
	return args
}

// aliases are the names of a flag; the last one is the strongest.
func aliases(flag string) (names []string) {
	for _, n := range Names {
		if n.Flag == flag {
			names = append(names, n.Before)
		}
	}
	return append(names, flag)
}

// Normal makes flags known by all of their names.
func Normal(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(Current(name))
}

// Mistake collects what is wrong, so that all of it can be reported at once.
func (s *Set) Mistake(setting, format string, args ...any) {
	s.Mistakes.Add(human.Wrong(setting, format, args...))
}

// Clash reports those of the flags that were given.
func (s *Set) Clash(names []string, why string) {
	for _, name := range names {
		if f := s.Flags.Lookup(name); f != nil && f.Changed {
			s.Mistake(name, "%s", why)
		}
	}
}

// Differs tells if a flag was given another value than it has without: a resolved plan names all of them.
func (s *Set) Differs(name string) bool {
	f := s.Flags.Lookup(name)
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// Part says what a flag belongs to: its command knows the parts. The zero value is that command itself.
type Part int

// Flag is common to all declarations of flags.
type Flag struct {
	Part  Part
	Name  string
	Usage string
}

// Value is the value of a flag. Its Set never fails, because the library would stop there: mistakes are collected.
type Value struct {
	Part            Part
	Kind            string // what it takes, in a word; it ends in ",..." if that is a list with commas in between
	Text            string
	Complete        cobra.CompletionFunc
	Enum            []string // the values that there are; nil if there are others
	Repeatable      bool     // it may be given several times
	CommandLineOnly bool     // neither a variable nor a plan's file says it
	// In a plan's file it can be more than text: Nodes reads that, and reports what is wrong; Object is its schema. nil
	// = it cannot.
	Nodes  func(*yaml.Node) []Item
	Object func() map[string]any
	Given  []string // what it was given

	set func(string)
}

// ValueOf is the value of a flag; nil if the flag is one of the library.
func ValueOf(f *pflag.Flag) *Value {
	if f == nil {
		return nil
	}
	v, _ := f.Value.(*Value)
	return v
}

// Having names the flags, but for those of the library, that are asked for.
func Having(flags *pflag.FlagSet, asked func(*pflag.Flag, *Value) bool) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if v := ValueOf(f); v != nil && asked(f, v) {
			names = append(names, f.Name)
		}
	})
	return names
}

// Value is the value of the flag of that name; nil without one.
func (s *Set) Value(name string) *Value { return ValueOf(s.Flags.Lookup(name)) }

// String, Type and Set make a value one of pflag.
func (v *Value) String() string { return v.Text }

// Type is its kind.
func (v *Value) Type() string { return v.Kind }

// Set reads a value.
func (v *Value) Set(text string) error {
	v.set(text)
	return nil
}

// List tells whether it is a list with commas in between.
func (v *Value) List() bool { return strings.HasSuffix(v.Kind, ",...") }
