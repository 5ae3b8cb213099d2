package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// Sections of flags in the help. Flags that are declared before the first section are shown with the command itself.
var (
	runSection    = settings.Section{Name: "run", About: "what is run"}
	loadSection   = settings.Section{Name: "load", About: "the load"}
	attachSection = settings.Section{Name: "attach", About: "servers that are up already"}
	agentsSection = settings.Section{Name: "agents", About: "workers on several machines"}
	gatesSection  = settings.Section{Name: "gates", About: "what must hold, or the exit code is not 0"}
	outputSection = settings.Section{Name: "output", About: "what is shown and saved"}
)

var sections = []settings.Section{runSection, loadSection, attachSection, agentsSection, gatesSection, outputSection}

// helpFlags is the number of flags up to which the help of a command lists them all. Beyond it, the help lists
// sections instead.
const helpFlags = 12

// helpOf writes the help of a command, short enough for one screen. "help COMMAND SECTION" shows the flags of a
// section.
func (e Env) helpOf(c *cobra.Command) error {
	p, width := &human.Printer{W: e.Stdout}, e.columns()
	for paragraph := range strings.SplitSeq(cmp.Or(c.Long, c.Short), "\n\n") {
		if !strings.Contains(paragraph, "\n\t") {
			paragraph = strings.Join(human.Wrap(strings.ReplaceAll(paragraph, "\n", " "), width), "\n")
		}
		p.Line("%s\n", paragraph)
	}
	if c.HasParent() {
		p.Line("  %s\n", c.UseLine())
	}
	if c.Example != "" {
		p.Line("%s\n", c.Example)
	}
	help := strings.Replace(c.CommandPath(), c.Root().Name(), c.Root().Name()+" help", 1)
	listed := below(c)
	if len(listed) > 0 {
		p.Wrapped("  commands   ", 13, strings.Join(listed, ", ")+": "+help+" COMMAND")
	}
	own := settings.In(c.Flags(), "")
	anyFlag := func(*pflag.Flag, *settings.Value) bool { return true }
	all := settings.Having(c.Flags(), anyFlag)
	many := len(all) > helpFlags && len(all) > len(settings.Having(own, anyFlag))
	if many {
		p.Line("  flags      in sections, or all: %s SECTION", help)
	}
	for _, s := range sections {
		switch in := settings.In(c.Flags(), s.Name); {
		case !many:
			in.VisitAll(own.AddFlag)
		case in.HasFlags():
			p.Line("    %-8s %s", s.Name, some(s.About+":", in))
		}
	}
	if own.HasFlags() {
		if many || len(listed) > 0 {
			p.Line("")
		}
		p.Line("%s", strings.TrimRight(own.FlagUsagesWrapped(width), "\n"))
	}
	return p.Err
}

// sectionWidth is the largest width of the line about a section, in columns.
const sectionWidth = 80

// The function some appends the names of flags to a text, as long as it stays within sectionWidth.
func some(text string, flags *pflag.FlagSet) string {
	full := false
	flags.VisitAll(func(f *pflag.Flag) {
		if full {
			return
		}
		if full = len(text)+len(f.Name) > sectionWidth; full {
			text += " ..."
		} else {
			text += " --" + f.Name
		}
	})
	return text
}

// everySection is the name for the flags of all sections.
const everySection = "all"

// helpOfSection writes the flags of one section, or of all if the name is everySection. It returns false if there is
// no such section.
func (e Env) helpOfSection(c *cobra.Command, name string) (found bool) {
	for _, s := range append(sections, settings.Section{Name: "", About: "of this command alone"}) {
		if in := settings.In(c.Flags(), s.Name); in.HasFlags() && (name == s.Name || name == everySection) {
			_, _ = fmt.Fprintf(e.Stdout, "%s\n\n%s\n", strings.TrimPrefix(s.Name+": "+s.About, ": "),
				in.FlagUsagesWrapped(e.columns()))
			found = true
		}
	}
	return found
}

// The function below returns the names of a command's visible subcommands.
func below(c *cobra.Command) []string {
	shown := slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool { return sub.Hidden })
	return human.Names(shown, (*cobra.Command).Name)
}

// expected returns the end of an error message: a list of the subcommands or, if there are none, a pointer to the
// help.
func expected(c *cobra.Command) string {
	if names := below(c); len(names) > 0 {
		return "; the commands are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("; see %s --help", c.CommandPath())
}
