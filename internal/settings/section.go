package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// Section is a group of flags that the help shows together.
type Section struct{ Name, About string }

// sectionKey is the key of the annotation that has the section of a flag.
const sectionKey = "section"

// Begin sets the section of all flags that are declared after the call.
func (s *Set) Begin(in Section) { s.section = in.Name }

func (s *Set) inSection(f *pflag.Flag) *pflag.Flag {
	f.Usage = strings.ReplaceAll(f.Usage, "\n", " ") // the help breaks lines itself
	f.Annotations = map[string][]string{sectionKey: {s.section}}
	return f
}

// In returns the visible flags of a section. The empty name stands for flags outside of all sections.
func In(flags *pflag.FlagSet, section string) *pflag.FlagSet {
	in := New().Flags
	flags.VisitAll(func(f *pflag.Flag) {
		if of := strings.Join(f.Annotations[sectionKey], ""); of == section && !f.Hidden {
			in.AddFlag(f)
		}
	})
	return in
}
