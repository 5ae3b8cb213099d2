// Package settings declares the settings of commands. The declaration of a setting defines its flag, environment
// variable, key in a plan's file, JSON schema, shell completion and help. Mistakes in values are collected, with the
// places of the values.
package settings

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/human"
)

// Set has the settings of one command.
type Set struct {
	Flags    *pflag.FlagSet
	Mistakes human.Mistakes
	File     string // path of the plan's file in YAML; empty = no file
	Unread   bool   // File could not be read
	// Lists has the keys of the plan's file that are not flags, such as "phases". Settle sets the values.
	Lists map[string]*yaml.Node
	// Hide replaces secrets in the value of a setting; nil = values have no secrets.
	Hide func(setting, text string) string
	// Origins tells where the value of each flag comes from. Places has the places of list items and keys in the
	// plan's file. Settle sets both.
	Origins map[string]string
	Places  map[human.Mistake]string

	section string // section of the flags that are declared next
}

// New returns an empty Set, which belongs to no command.
func New() Set {
	s := Set{Flags: &pflag.FlagSet{SortFlags: false}, Origins: map[string]string{}, Places: map[human.Mistake]string{}}
	s.Flags.SetNormalizeFunc(Normal)
	return s
}

// Of returns the Set of a command. The help shows flags in the order in which they are declared.
func Of(c *cobra.Command) Set {
	c.Flags().SortFlags = false
	c.Flags().SetNormalizeFunc(Normal)
	return Set{Flags: c.Flags()}
}

// Name has the three names of one setting. Flag is the present flag, and also the key in a plan's file. Before is the
// former flag. JSON is the name in JSON documents, which never changes.
type Name struct{ Flag, Before, JSON string }

// Names lists the settings whose three names are not the same. A former name of a flag is still accepted.
var Names = []Name{{"lease", "ttl", "ttl_ns"}, {"backoff", "retry", "retry_ns"}, {"pages", "keys", "keys"},
	{"patience", "wait", "wait_ns"}}

// Current returns the present name of a flag, for its present or former name.
func Current(name string) string {
	if i := slices.IndexFunc(Names, func(n Name) bool { return n.Before == name }); i >= 0 {
		return Names[i].Flag
	}
	return name
}

// Before replaces flags by their former names, which older builds know, too.
func Before(args []string) []string {
	for _, n := range Names {
		if i := slices.Index(args, "--"+n.Flag); i >= 0 {
			args[i] = "--" + n.Before
		}
	}
	return args
}

// aliases returns all names of a flag. If several are used, the last of the list applies.
func aliases(flag string) (names []string) {
	for _, n := range Names {
		if n.Flag == flag {
			names = append(names, n.Before)
		}
	}
	return append(names, flag)
}

// Normal makes the library accept the former name of a flag as well.
func Normal(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(Current(name))
}

// Mistake adds a mistake. All mistakes are reported together, at the end.
func (s *Set) Mistake(setting, format string, args ...any) {
	s.Mistakes.Add(human.Wrong(setting, format, args...))
}

// Clash adds a mistake for each of the named flags that the user has set. The argument why is the text of the
// mistake.
func (s *Set) Clash(names []string, why string) {
	for _, name := range names {
		if f := s.Flags.Lookup(name); f != nil && f.Changed {
			s.Mistake(name, "%s", why)
		}
	}
}

// Differs tells whether a flag has another value than its default. It compares the values, because a resolved plan sets
// every flag.
func (s *Set) Differs(name string) bool {
	f := s.Flags.Lookup(name)
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// Part classifies flags, for example by whether they belong to the plan. The command defines its parts; zero is the
// command itself.
type Part int

// Flag has what the declarations of all flags have in common.
type Flag struct {
	Part  Part
	Name  string
	Usage string
}

// Value is the value of a flag. Its method Set never fails, because the library would stop at the first error.
// Instead, it collects mistakes.
type Value struct {
	Part            Part
	Kind            string // type of the value in a word; for a list with commas it ends in ",..."
	Text            string
	Complete        cobra.CompletionFunc
	Enum            []string // all accepted values; nil = others are accepted, too
	Repeatable      bool     // the flag may be given several times
	CommandLineOnly bool     // only the command line can set it, not the environment or a plan's file
	// Nodes parses a value in a plan's file that is more than text, and reports mistakes. Object returns its JSON
	// schema. Both are nil if the value must be text.
	Nodes  func(*yaml.Node) []Item
	Object func() map[string]any
	Given  []string // all values that were given so far

	set func(string)
}

// ValueOf returns the Value of a flag; nil for a flag that the library declared.
func ValueOf(f *pflag.Flag) *Value {
	if f == nil {
		return nil
	}
	v, _ := f.Value.(*Value)
	return v
}

// Having returns the names of the flags for which asked returns true. It leaves out flags that the library declared.
func Having(flags *pflag.FlagSet, asked func(*pflag.Flag, *Value) bool) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if v := ValueOf(f); v != nil && asked(f, v) {
			names = append(names, f.Name)
		}
	})
	return names
}

// Value returns the Value of the flag with the name; nil if there is no such flag.
func (s *Set) Value(name string) *Value { return ValueOf(s.Flags.Lookup(name)) }

// String returns the value as text. String, Type and Set implement pflag.Value.
func (v *Value) String() string { return v.Text }

// Type returns the type of the value in a word, for the help.
func (v *Value) Type() string { return v.Kind }

// Set parses a value. It always returns nil: mistakes are collected.
func (v *Value) Set(text string) error {
	v.set(text)
	return nil
}

// List tells whether the value is a list with commas.
func (v *Value) List() bool { return strings.HasSuffix(v.Kind, ",...") }
