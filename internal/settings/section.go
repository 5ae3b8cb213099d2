package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// Section is a group of flags that help shows together.
type Section struct{ Name, About string }

// sectionKey is the annotation for a flag's section.
const sectionKey = "section"

// Begin sets the section of the flags that are declared from now on.
func (s *Set) Begin(in Section) { s.section = in.Name }

func (s *Set) inSection(f *pflag.Flag) *pflag.Flag {
	f.Usage = strings.ReplaceAll(f.Usage, "\n", " ") // help wraps it
	f.Annotations = map[string][]string{sectionKey: {s.section}}
	return f
}

// In returns the visible flags of a section; an empty section is that of the command itself.
func In(flags *pflag.FlagSet, section string) *pflag.FlagSet {
	in := New().Flags
	flags.VisitAll(func(f *pflag.Flag) {
		if of := strings.Join(f.Annotations[sectionKey], ""); of == section && !f.Hidden {
			in.AddFlag(f)
		}
	})
	return in
}
