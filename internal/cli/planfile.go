package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
)

// planFlag is the flag that names a plan, and savedPlan the file that a plan is kept in beside its run.
const (
	planFlag  = "plan"
	savedPlan = "plan.yaml"
)

// environmentPrefix begins the names of the environment variables that stand for flags.
const environmentPrefix = "HAMMERLOCK_"

// entry is a value of a flag, or several, and where it was found.
type entry struct {
	items []item
	at    string // file:line:column
}

// item is one value, and where it is in the plan's file. Of a list with commas in between it has the parts.
type item struct {
	text, at string
	parts    []item
}

// settle sets the flags that the command line does not, from the environment, or else from the plan's file, and notes where
// each comes from.
func (o *options) settle(c *cobra.Command, getenv func(string) string) {
	if c.Flags().Lookup(planFlag) == nil {
		return
	}
	o.origins, o.places = map[string]string{}, map[human.Mistake]string{}
	c.Flags().Visit(func(f *pflag.Flag) { o.origins[f.Name] = "--" + f.Name })
	if name := environmentPrefix + "PLAN"; o.file == "" {
		o.file = getenv(name)
	}
	read := o.readPlan(c.Flags())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(*value); !ok || o.origins[f.Name] != "" || !settable(f) {
			return
		}
		s, found := read[f.Name]
		for _, name := range namesOf(f.Name) {
			variable := environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if text := getenv(variable); text != "" {
				s, found = entry{[]item{{text: text, at: variable}}, variable}, true
			}
		}
		if !found {
			return
		}
		o.set(f.Name, s)
	})
	o.settlePresets(c.Flags())
	o.settleLoad()
	o.settleServices()
}

// namesOf are the names of a flag; the last one is the strongest.
func namesOf(flag string) (names []string) {
	for _, n := range Names {
		if n.Flag == flag {
			names = append(names, n.Before)
		}
	}
	return append(names, flag)
}

// set gives a flag its values, and notes where they come from.
func (o *options) set(name string, s entry) {
	o.origins[name] = s.at
	for _, x := range s.items {
		text := o.plan.Attach.Secrets.Take(x.text)
		o.places[human.Mistake{Setting: name, Item: text}] = x.at
		for _, part := range x.parts {
			o.places[human.Mistake{Setting: name, Item: part.text}] = part.at
		}
		_ = o.flags.Set(name, text) // what is wrong with it is a mistake
	}
}

// settable tells whether a plan can set a flag. It says what is run and how that is shown, not where another plan is.
func settable(f *pflag.Flag) bool { return f.Name != planFlag && f.Name != "list" && !f.Hidden }

// readPlan reads the plan's file, if there is one. What is wrong in it is a mistake with its place.
func (o *options) readPlan(flags *pflag.FlagSet) map[string]entry {
	if o.file == "" {
		return nil
	}
	root, err := parsePlan(o.file)
	if err != nil {
		o.mistake("", "%v", err)
		return nil
	}
	if root.Kind != yaml.MappingNode {
		o.wrong(root, "a plan is a list of NAME: VALUE, as in workers: 64")
		return nil
	}
	read, good := map[string]entry{}, flagNames(flags, func(f *pflag.Flag, _ *value) bool { return settable(f) })
	if o.listing {
		good = append(good, servicesKey)
	}
	for name, node := range o.keysOf(root, "", good) {
		if name == servicesKey {
			o.listed = node
			continue
		}
		items, err := o.itemsOf(node, flags.Lookup(name).Value.(*value))
		if err != nil {
			o.wrong(node, "%s: %v", name, err)
			continue
		}
		read[name] = entry{items, o.place(node)}
	}
	return read
}

// parsePlan reads a file with a plan.
func parsePlan(file string) (*yaml.Node, error) {
	var text []byte
	f, err := os.Open(file)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxPlan+1))
		err = errors.Join(err, f.Close())
	}
	var document yaml.Node
	switch {
	case len(text) > maxPlan:
		return nil, fmt.Errorf("%s: it is longer than a plan can be (%d MiB)", file, maxPlan>>20)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--%s: %w; bench plan prints a plan to begin with", planFlag, err)
	case err != nil:
		return nil, fmt.Errorf("--%s: %w", planFlag, err)
	case !utf8.Valid(text):
		return nil, fmt.Errorf("%s: it is no text: a plan is a YAML file; bench plan prints one to begin with", file)
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("%s: it is empty; bench plan prints a plan to begin with", file)
	}
	return document.Content[0], nil
}

// maxPlan is how long a plan may be, in bytes.
const maxPlan = 1 << 20

// place names where a node of the plan is.
func (o *options) place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", o.file, n.Line, n.Column)
}

// wrong collects a mistake of a node of the plan.
func (o *options) wrong(n *yaml.Node, format string, args ...any) {
	o.mistake("", "%s: %s", o.place(n), fmt.Sprintf(format, args...))
}

// itemsOf are the values of a node: one, those of a list with commas in between, or, if a flag may be given several times,
// those of a list one by one.
func (o *options) itemsOf(n *yaml.Node, v *value) (items []item, err error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return []item{{text: n.Value, at: o.place(n)}}, nil
	}
	if n.Kind != yaml.SequenceNode || !v.list() && !v.many && v.nodes == nil {
		return nil, errors.New("it takes one value")
	}
	if v.nodes != nil {
		return v.nodes(n), nil
	}
	var texts []string
	for _, x := range n.Content {
		if x.Kind != yaml.ScalarNode || x.Tag == "!!null" {
			return nil, errors.New("it takes a list of values")
		}
		texts, items = append(texts, x.Value), append(items, item{text: x.Value, at: o.place(x)})
	}
	if v.many {
		return items, nil
	}
	return []item{{strings.Join(texts, ","), o.place(n), items}}, nil
}

// list tells whether a value is a list with commas in between.
func (v *value) list() bool { return strings.HasSuffix(v.kind, ",...") }

// placed puts the places of values before the mistakes that they are: of what does not come from the command line.
func (o *options) placed(err error) error {
	usage, ok := errors.AsType[*harness.UsageError](err)
	if !ok || err.Error() != usage.Error() { // it is not alone
		return err
	}
	placed := &harness.UsageError{}
	for _, m := range usage.Mistakes {
		origin, key := o.origins[m.Setting], human.Mistake{Setting: m.Setting, Item: m.Item, Key: m.Key}
		at := cmp.Or(o.places[key], o.places[key.In(m.Item, "")], origin)
		if at != "" && origin != "--"+m.Setting {
			m = human.Mistake{Text: at + ": " + m.Text}
		}
		placed.Mistakes.Add(m)
	}
	return placed
}

// writePlan writes the resolved plan: a plan again, with the origin of each value.
func (o *options) writePlan(w io.Writer) error {
	p := &human.Printer{W: w}
	scenarios := (len(o.plan.Scenarios) > 0 || o.explores) && len(o.services) == 0 // services have the load of the plan
	o.flags.VisitAll(func(f *pflag.Flag) {
		v, ok := f.Value.(*value)
		origin := o.origins[f.Name]
		unused := ok && scenarios && (v.part == load || v.part == instead)
		if !ok || !settable(f) || said(&o.plan, f.Name) || origin == "" && v.text == "" || unused {
			return
		}
		origin = cmp.Or(origin, "default")
		if f.Name == phasesFlag && v.text != "" {
			o.writePhases(p, origin)
			return
		}
		writeSetting(p, "", "", f.Name, v, origin)
	})
	o.writeServices(p)
	return p.Err
}

// writeSetting writes a setting and where it comes from. Its first line has a prefix of its own.
func writeSetting(p *human.Printer, first, others, name string, v *value, origin string) {
	text, err := yaml.Marshal(map[string]any{name: v.plain()})
	p.Err = errors.Join(p.Err, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	p.Line("%-40s # %s", first+lines[0], origin)
	for _, line := range lines[1:] {
		p.Line("%s", others+line)
	}
}

// plain is a value as a plan has it.
func (v *value) plain() any {
	switch {
	case v.many:
		return v.given
	case v.list() && strings.Contains(v.text, ","):
		return split(v.text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: v.text}
}

// keepPlan saves the resolved plan beside a run, if the run has one.
func (o *options) keepPlan(dir string) error {
	if o.file == "" {
		return nil
	}
	return writeFile(filepath.Join(dir, savedPlan), os.O_TRUNC, o.writePlan)
}
