package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hammerlock/internal/human"
)

// section is a group of flags that help shows together.
type section struct{ name, about string }

// The sections. A flag that is declared before any of them is the command's own.
var (
	runSection    = section{"run", "what is run: --topology --lock --fault --counter --seed --count --redis-server ..."}
	loadSection   = section{"load", "the load: --workers --pages --rate --lease --hold --patience --backoff --phases ..."}
	attachSection = section{"attach", "servers that are up already: --addr --user --tls-ca --prefix ..."}
	agentsSection = section{"agents", "workers on several machines: --agents --listen ..."}
	gatesSection  = section{"gates", "what must hold, or the exit code is not 0: --gate ..."}
	outputSection = section{"output", "what is shown and saved: --out --json --tui --web --metrics --plan --list ..."}
)

var sections = []section{runSection, loadSection, attachSection, agentsSection, gatesSection, outputSection}

// sectionKey is the annotation of a flag that has its section.
const sectionKey = "section"

// begin puts the flags that are declared from now on into a section.
func (o *options) begin(s section) { o.section = s.name }

func (o *options) inSection(f *pflag.Flag) *pflag.Flag {
	f.Usage = strings.ReplaceAll(f.Usage, "\n", " ") // it is wrapped where it is shown
	f.Annotations = map[string][]string{sectionKey: {o.section}}
	return f
}

// helpFlags is how many flags a command's help shows; of a command with more it shows the sections.
const helpFlags = 12

// helpOf writes the help of a command in a screen; the flags of a section are in the help of that.
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
	listed := slices.DeleteFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Hidden })
	if len(listed) > 0 {
		p.Wrapped("  commands   ", 13, strings.Join(human.Names(listed, (*cobra.Command).Name), ", ")+": "+help+" COMMAND")
	}
	own := flagsOf(c, "")
	many := len(flagNames(c.Flags(), func(*pflag.Flag, *value) bool { return true })) > helpFlags
	if many {
		p.Line("  flags      in sections, or all: %s SECTION", help)
	}
	for _, s := range sections {
		switch in := flagsOf(c, s.name); {
		case !many:
			in.VisitAll(own.AddFlag)
		case in.HasFlags():
			p.Line("    %-8s %s", s.name, s.about)
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

// everySection is the name that asks for the flags of all sections.
const everySection = "all"

// helpOfSection writes the flags of a section, or of all; it is false if there is none of that name.
func (e Env) helpOfSection(c *cobra.Command, name string) (found bool) {
	for _, s := range append(sections, section{"", "of this command alone"}) {
		if in := flagsOf(c, s.name); in.HasFlags() && (name == s.name || name == everySection) {
			title, _, _ := strings.Cut(s.about, ": --")
			_, _ = fmt.Fprintf(e.Stdout, "%s\n\n%s\n", strings.TrimPrefix(s.name+": "+title, ": "), in.FlagUsagesWrapped(e.columns()))
			found = true
		}
	}
	return found
}

// flagsOf are the flags of a command in a section; the empty name is the command's own.
func flagsOf(c *cobra.Command, name string) *pflag.FlagSet {
	in := newFlags()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if of := strings.Join(f.Annotations[sectionKey], ""); of == name && !f.Hidden {
			in.AddFlag(f)
		}
	})
	return in
}

// columns is the width of the terminal; human.Width without one.
func (e Env) columns() int {
	if at := e.terminals[0]; at != nil {
		if width, _, err := term.GetSize(int(at.Fd())); err == nil && width > 40 {
			return min(width, 120)
		}
	}
	return human.Width
}
