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
	"hammerlock/internal/settings"
)

// The sections. A flag that is declared before any of them is the command's own.
var (
	runSection = settings.Section{Name: "run",
		About: "what is run: --topology --lock --fault --counter --seed --count --redis-server ..."}
	loadSection = settings.Section{Name: "load",
		About: "the load: --workers --pages --rate --lease --hold --patience --backoff --phases ..."}
	attachSection = settings.Section{Name: "attach",
		About: "servers that are up already: --addr --user --tls-ca --prefix ..."}
	agentsSection = settings.Section{Name: "agents", About: "workers on several machines: --agents --listen ..."}
	gatesSection  = settings.Section{Name: "gates", About: "what must hold, or the exit code is not 0: --gate ..."}
	outputSection = settings.Section{Name: "output",
		About: "what is shown and saved: --out --json --tui --web --metrics --plan --list ..."}
)

var sections = []settings.Section{runSection, loadSection, attachSection, agentsSection, gatesSection, outputSection}

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
		p.Wrapped("  commands   ", 13, strings.Join(human.Names(listed, (*cobra.Command).Name),
			", ")+": "+help+" COMMAND")
	}
	own := settings.In(c, "")
	many := len(settings.Having(c.Flags(), func(*pflag.Flag, *settings.Value) bool { return true })) > helpFlags
	if many {
		p.Line("  flags      in sections, or all: %s SECTION", help)
	}
	for _, s := range sections {
		switch in := settings.In(c, s.Name); {
		case !many:
			in.VisitAll(own.AddFlag)
		case in.HasFlags():
			p.Line("    %-8s %s", s.Name, s.About)
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
	for _, s := range append(sections, settings.Section{Name: "", About: "of this command alone"}) {
		if in := settings.In(c, s.Name); in.HasFlags() && (name == s.Name || name == everySection) {
			title, _, _ := strings.Cut(s.About, ": --")
			_, _ = fmt.Fprintf(e.Stdout, "%s\n\n%s\n", strings.TrimPrefix(s.Name+": "+title, ": "),
				in.FlagUsagesWrapped(e.columns()))
			found = true
		}
	}
	return found
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
