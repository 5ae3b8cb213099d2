package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// Section is a group of flags that help shows together.
type Section struct{ Name, About string }

// sectionKey is the annotation of a flag that has its section.
const sectionKey = "section"

// Begin puts the flags that are declared from now on into a section.
func (s *Set) Begin(in Section) { s.section = in.Name }

func (s *Set) inSection(f *pflag.Flag) *pflag.Flag {
	f.Usage = strings.ReplaceAll(f.Usage, "\n", " ") // it is wrapped where it is shown
	f.Annotations = map[string][]string{sectionKey: {s.section}}
	return f
}

// In are the flags in a section; the empty name is the command's own.
func In(flags *pflag.FlagSet, section string) *pflag.FlagSet {
	in := New().Flags
	flags.VisitAll(func(f *pflag.Flag) {
		if of := strings.Join(f.Annotations[sectionKey], ""); of == section && !f.Hidden {
			in.AddFlag(f)
		}
	})
	return in
}
