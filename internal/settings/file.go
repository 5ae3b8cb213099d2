package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/human"
)

// FileFlag is the name of the flag for a plan's file.
const FileFlag = "plan"

// EnvironmentPrefix is the prefix of the environment variables of flags, as in HAMMERLOCK_WORKERS.
const EnvironmentPrefix = "HAMMERLOCK_"

// Variables returns the environment variables that set a flag. If several are set, the last of the list applies.
func Variables(flag string) []string {
	return human.Names(aliases(flag), func(name string) string {
		return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	})
}

// entry has the values that a plan's file gives to a flag, and their place.
type entry struct {
	items []Item
	at    string // file:line:column
}

// Item is a value in a plan's file, with its place (file:line:column). If the value is a list, Parts has its
// elements.
type Item struct {
	Text, At string
	Parts    []Item
}

// Settle sets the flags that the command line did not set. It takes the value from the environment or, if the
// variable is missing, from the plan's file. It records where each value comes from.
func (s *Set) Settle(getenv func(string) string) {
	s.Origins, s.Places = map[string]string{}, map[human.Mistake]string{}
	s.Flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.Origins[f.Name] = "--" + f.Name
		}
	})
	if s.File == "" {
		s.File = getenv(Variables(FileFlag)[0])
	}
	read := s.read()
	s.Flags.VisitAll(func(f *pflag.Flag) {
		if s.Origins[f.Name] != "" || !Settable(f) {
			return
		}
		e, found := read[f.Name]
		for _, variable := range Variables(f.Name) {
			if text := getenv(variable); text != "" {
				e, found = entry{[]Item{{Text: text, At: variable}}, variable}, true
			}
		}
		if found {
			s.Give(f.Name, e.at, e.items...)
		}
	})
}

// Give sets a flag to one or more values, and records where they come from.
func (s *Set) Give(name, origin string, items ...Item) {
	s.Origins[name] = origin
	for _, x := range items {
		text := x.Text
		if s.Hide != nil {
			text = s.Hide(name, text)
		}
		s.Places[human.Mistake{Setting: name, Item: text}] = x.At
		for _, part := range x.Parts {
			s.Places[human.Mistake{Setting: name, Item: part.Text}] = part.At
		}
		_ = s.Flags.Set(name, text) // an invalid value is collected as a mistake
	}
}

// Preset sets a flag if it has no value from the command line, the environment or the file. It ignores unknown flags.
func (s *Set) Preset(origin, name, text string) {
	if s.Flags.Lookup(name) != nil && s.Origins[name] == "" {
		s.Give(name, origin, Item{Text: text, At: origin})
	}
}

// Settable tells whether a plan's file can set the flag.
func Settable(f *pflag.Flag) bool {
	v := ValueOf(f)
	return v != nil && !v.CommandLineOnly && !f.Hidden
}

// read reads the plan's file, if there is one. Mistakes in the file are collected, with their lines.
func (s *Set) read() map[string]entry {
	if s.File == "" {
		return nil
	}
	root, err := parse(s.File)
	if s.Unread = err != nil; s.Unread {
		s.Mistake("", "%v", err)
		return nil
	}
	if root.Kind != yaml.MappingNode {
		s.Wrong(root, "a plan is a list of NAME: VALUE, as in workers: 64")
		return nil
	}
	read, good := map[string]entry{}, Having(s.Flags, func(f *pflag.Flag, _ *Value) bool { return Settable(f) })
	for name, node := range s.KeysOf(root, "", slices.AppendSeq(good, maps.Keys(s.Lists))) {
		if _, is := s.Lists[name]; is {
			s.Lists[name] = node
			continue
		}
		items, err := s.ItemsOf(node, s.Value(name))
		if err != nil {
			s.Wrong(node, "%s: %v", name, err)
			continue
		}
		read[name] = entry{items, s.Place(node)}
	}
	return read
}

func parse(file string) (*yaml.Node, error) {
	var text []byte
	f, err := os.Open(file)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxPlan+1))
		err = errors.Join(err, f.Close())
	}
	var document, second yaml.Node
	switch {
	case len(text) > maxPlan:
		return nil, fmt.Errorf("%s: it is longer than a plan can be (%d MiB)", file, maxPlan>>20)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--%s: %w; bench plan prints a plan to begin with", FileFlag, err)
	case err != nil:
		return nil, fmt.Errorf("--%s: %w", FileFlag, err)
	case !utf8.Valid(text):
		return nil, fmt.Errorf("%s: it is no text: a plan is a YAML file; bench plan prints one to begin with", file)
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err = documents.Decode(&document); err == nil {
		err = documents.Decode(&second)
	}
	switch {
	case len(document.Content) == 0 && errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: it is empty; bench plan prints a plan to begin with", file)
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document begins there, and a plan is one: leave out ---", file,
			second.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return document.Content[0], nil
}

// maxPlan is the maximum size of a plan's file, in bytes.
const maxPlan = 1 << 20

// Place returns the place of a YAML node, as file:line:column.
func (s *Set) Place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", s.File, n.Line, n.Column)
}

// Wrong adds a mistake, with the place of the YAML node.
func (s *Set) Wrong(n *yaml.Node, format string, args ...any) {
	s.Mistake("", "%s: %s", s.Place(n), fmt.Sprintf(format, args...))
}

// ItemsOf returns the values that a YAML node gives to a flag. If the flag is Repeatable, each element of a list is
// one Item. Otherwise a list becomes a single Item, with the elements as Parts.
func (s *Set) ItemsOf(n *yaml.Node, v *Value) (items []Item, err error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return []Item{{Text: n.Value, At: s.Place(n)}}, nil
	}
	switch some := v.List() || v.Repeatable || v.Nodes != nil; {
	case !some:
		return nil, errors.New("it takes one value")
	case n.Kind != yaml.SequenceNode:
		return nil, errors.New("it takes a value, or a list of values")
	}
	if v.Nodes != nil {
		return v.Nodes(n), nil
	}
	var texts []string
	for _, x := range n.Content {
		if x.Kind != yaml.ScalarNode || x.Tag == "!!null" {
			return nil, errors.New("it takes a list of values")
		}
		texts, items = append(texts, x.Value), append(items, Item{Text: x.Value, At: s.Place(x)})
	}
	if v.Repeatable {
		return items, nil
	}
	return []Item{{strings.Join(texts, ","), s.Place(n), items}}, nil
}

// Placed puts the place of the wrong value before the text of each mistake, except for values from the command line.
// Mistakes in the plan's file come last, in the order of their lines.
func (s *Set) Placed(all human.Mistakes) (placed human.Mistakes) {
	for _, m := range all {
		origin, key := s.Origins[m.Setting], human.Mistake{Setting: m.Setting, Item: m.Item, Key: m.Key}
		at := cmp.Or(s.Places[key], s.Places[key.In(m.Item, "")], origin)
		if at != "" && origin != "--"+m.Setting {
			m = human.Mistake{Text: at + ": " + m.Text}
		}
		placed.Add(m)
	}
	slices.SortStableFunc(placed, func(a, b human.Mistake) int { return slices.Compare(s.position(a), s.position(b)) })
	return placed
}

// position returns the line and column at which the text of a mistake begins; 0 and 0 if it is not in the plan's
// file.
func (s *Set) position(m human.Mistake) []int {
	line, column := 0, 0
	if at, is := strings.CutPrefix(m.Text, s.File+":"); is && s.File != "" {
		_, _ = fmt.Sscanf(at, "%d:%d", &line, &column)
	}
	return []int{line, column}
}

// Write prints a setting as in a plan's file, with its origin as a comment. The argument first is put before the
// first line, and the argument others before each further line.
func Write(p *human.Printer, first, others, name string, v *Value, origin string) {
	text, err := yaml.Marshal(map[string]any{name: v.plain()})
	p.Err = errors.Join(p.Err, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	p.Line("%-40s # %s", first+lines[0], origin)
	for _, line := range lines[1:] {
		p.Line("%s", others+line)
	}
}

// plain returns the value in a form that YAML can encode.
func (v *Value) plain() any {
	switch {
	case v.Repeatable:
		return v.Given
	case v.List() && strings.Contains(v.Text, ","):
		return Split(v.Text)
	case v.number() || v.Kind == "bool":
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
	}
	return v.Text // YAML puts "off" in quotation marks, because some readers take it for false
}

// Mapped is a key of a YAML mapping, with its value.
type Mapped struct {
	Key  string
	Node *yaml.Node
	Text string // the value as text; the elements of a list are joined with commas
}

// SettingsOf returns the keys and values of a YAML mapping. It reports keys that are not in good, and values that are
// neither text nor a list of texts. The argument of ends the error message, as in " of a phase".
func (s *Set) SettingsOf(n *yaml.Node, of string, good []string) (all []Mapped) {
	for name, node := range s.KeysOf(n, of, good) {
		if texts, isText := TextsOf(node); isText {
			all = append(all, Mapped{name, node, strings.Join(texts, ",")})
		} else {
			s.Wrong(node, "%s: it takes a value", name)
		}
	}
	return all
}

// KeysOf yields the keys and values of a YAML mapping. It reports duplicate keys, and keys that are not in good.
func (s *Set) KeysOf(n *yaml.Node, of string, good []string) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		seen := map[string]bool{}
		for pair := range slices.Chunk(n.Content, 2) {
			name := Current(pair[0].Value)
			switch {
			case !slices.Contains(good, name):
				s.Wrong(pair[0], "%s: no such setting%s%s", name, of, human.Meant(name, good))
			case seen[name]:
				s.Wrong(pair[0], "%s: it is set above already", name)
			case !yield(name, pair[1]):
				return
			}
			seen[name] = true
		}
	}
}

// TextsOf returns the value of a YAML node, or the elements of a list. It returns false if the node is something
// else.
func TextsOf(n *yaml.Node) (texts []string, ok bool) {
	switch {
	case n.Kind == yaml.AliasNode:
		return TextsOf(n.Alias)
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, n.Tag != "!!null"
	case n.Kind != yaml.SequenceNode:
		return nil, false
	}
	for _, x := range n.Content {
		if x.Kind != yaml.ScalarNode {
			return nil, false
		}
		texts = append(texts, x.Value)
	}
	return texts, true
}
