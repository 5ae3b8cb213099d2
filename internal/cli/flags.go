package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/scenarios"
)

// options are the flags of a command, and what is wrong with its command line.
type options struct {
	flags   *pflag.FlagSet
	plan    harness.Plan
	section string                   // of the flags that are declared
	file    string                   // of the plan
	origins map[string]string        // of the flags that are set, by name
	places  map[human.Mistake]string // of items of settings, and of their keys, in the plan's file
	json    bool
	quiet   bool
	list    bool
	tui     string
	quick   bool
	strict  bool // no scenario may be undecided

	expect   bool
	markdown string

	count int
	gates []compare.Gate
	live  []func(Env) outputs     // each opens an output that has an address
	files []func(*Document) error // each writes a file that was asked for

	explores bool                // explore is one of the scenarios
	explored []results.Judgement // ... and this came of it

	listing  bool       // a plan's file may list services
	listed   *yaml.Node // they, as the file has them
	services []*options // as they were read

	mistakes human.Mistakes
	fleet    fleetFlags

	beside func() (*results.Run, error) // another run that went on beside those of the plan, when they have ended
}

// newOptions are the options of a command, which shows its flags in the order of their declaration.
func newOptions(c *cobra.Command, p harness.Plan) *options {
	c.Flags().SortFlags = false
	c.Flags().SetNormalizeFunc(normal)
	return &options{flags: c.Flags(), plan: p}
}

// newFlags are the flags of a plan that is no command's.
func newFlags() *pflag.FlagSet {
	flags := &pflag.FlagSet{SortFlags: false}
	flags.SetNormalizeFunc(normal)
	return flags
}

// Name is what a thing is called on the command line and in plans, was called there before, and is called in JSON, whose
// names stay.
type Name struct{ Flag, Before, JSON string }

// Names are those that differ. A flag may still be called by its name before.
var Names = []Name{{"lease", "ttl", "ttl_ns"}, {"backoff", "retry", "retry_ns"}, {"pages", "keys", "keys"}, {"patience", "wait", "wait_ns"}}

// current is a flag's name today.
func current(name string) string {
	if i := slices.IndexFunc(Names, func(n Name) bool { return n.Before == name }); i >= 0 {
		return Names[i].Flag
	}
	return name
}

// before gives flags their names before, which every build knows.
func before(args []string) []string {
	for _, n := range Names {
		if i := slices.Index(args, "--"+n.Flag); i >= 0 {
			args[i] = "--" + n.Before
		}
	}
	return args
}

// normal makes flags known by all of their names.
func normal(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(current(name))
}

// mistake collects what is wrong with the command line, so that all of it can be reported at once.
func (o *options) mistake(setting, format string, args ...any) {
	o.mistakes.Add(human.Wrong(setting, format, args...))
}

// invalid is the error of all mistakes; nil if there are none.
func (o *options) invalid() error {
	if len(o.mistakes) == 0 {
		return nil
	}
	return &harness.UsageError{Mistakes: o.mistakes}
}

func usage(format string, args ...any) error {
	return &harness.UsageError{Mistakes: human.Mistakes{human.Wrong("", format, args...)}}
}

// part says what a flag belongs to. The zero value keeps it out of the command that repeats a run.
type part int

const (
	session part = iota // this command, or the output of its runs
	axis                // the plan, which runs all that is named: of each run it is one
	setting             // the plan, for all of its runs
	load                // the plan, for all of its runs, unless scenarios say that instead
	instead             // as load; where scenarios are the default, it asks for one run instead
)

// flag is common to all declarations of flags.
type flag struct {
	part  part
	name  string
	usage string
}

// flagNames names the flags of a command, but for those of the library, that are asked for.
func flagNames(flags *pflag.FlagSet, asked func(*pflag.Flag, *value) bool) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*value); ok && asked(f, v) {
			names = append(names, f.Name)
		}
	})
	return names
}

// ofPlan tells whether a flag says something about the plan.
func ofPlan(_ *pflag.Flag, v *value) bool { return v.part != session }

// value is the value of a flag. Its Set never fails, because the library would stop there: mistakes are collected.
type value struct {
	part     part
	kind     string
	text     string
	set      func(string)
	complete cobra.CompletionFunc
	enum     []string // the values that there are; nil if there are others
	many     bool     // it may be given several times
	// In a plan's file it can be more than text: nodes reads that, and reports what is wrong; object is its schema. nil = it cannot.
	nodes  func(*yaml.Node) []item
	object func() map[string]any
	given  []string // what it was given
}

func (v *value) String() string { return v.text }
func (v *value) Type() string   { return v.kind }

// Set reads a value.
func (v *value) Set(text string) error {
	v.set(text)
	return nil
}

// add declares a flag whose value is read by a function.
func (o *options) add(f flag, kind, preset string, set func(string) error) *value {
	v := o.value(f, kind, preset, set)
	o.inSection(o.flags.VarPF(v, f.name, "", f.usage))
	return v
}

// differs tells if a flag was given another value than it has without: a resolved plan names all of them.
func (o *options) differs(name string) bool {
	f := o.flags.Lookup(name)
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

func (o *options) value(f flag, kind, preset string, set func(string) error) *value {
	v := &value{part: f.part, kind: kind, text: preset}
	v.set = func(text string) {
		if v.list() && len(v.given) > 0 {
			o.mistake(f.name, ": it is given twice; one list has commas, as in --%s %s,%s", f.name, v.given[0], text)
			return
		}
		if err := set(text); err != nil {
			o.mistakes.Add(human.Wrong(f.name, "%q: %v", text, err).In(text, ""))
			return
		}
		v.text, v.given = text, append(v.given, text)
	}
	return v
}

// toggle declares a flag that needs no value, with a letter as its short name, if there is one.
func (o *options) toggle(f flag, letter string, to *bool) *pflag.Flag {
	v := o.value(f, "bool", strconv.FormatBool(*to), func(text string) error {
		is, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("true or false")
		}
		*to = is
		return nil
	})
	toggle := o.inSection(o.flags.VarPF(v, f.name, letter, f.usage))
	toggle.NoOptDefVal = "true"
	return toggle
}

func (o *options) duration(f flag, to *time.Duration) {
	o.add(f, "duration", to.String(), func(text string) error {
		d, err := readDuration(text)
		if err == nil {
			*to = d
		}
		return err
	})
}

// integer declares a flag for a whole number: from 1 to most, or, if most is 0, one that the plan checks.
func (o *options) integer(f flag, to *int, most int) {
	preset := *to
	o.add(f, "n", strconv.Itoa(preset), func(text string) error {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			return fmt.Errorf("a whole number, as in %d", max(preset, 1))
		case most > 0 && (n < 1 || n > most):
			return fmt.Errorf("from 1 to %d", most)
		}
		*to = n
		return nil
	})
}

func (o *options) text(f flag, kind string, to *string) {
	o.add(f, kind, *to, func(text string) error {
		if text == "" { // as a variable of a script is that was not set
			return fmt.Errorf("it is empty: it takes a %s; or leave it out", kind)
		}
		if info, err := os.Stat(text); kind == "file" && err == nil && info.IsDir() {
			return errors.New("it is a directory, and a file is needed")
		}
		*to = text
		return nil
	})
}

// names declares a flag for names with commas in between, which are offered for completion, but not checked.
func (o *options) names(f flag, to *[]string, offered []string) {
	o.add(f, "name,...", strings.Join(*to, ","), func(text string) error {
		if *to = split(text); len(*to) == 0 {
			return errors.New("no name: " + human.Instead("", offered))
		}
		return nil
	}).complete = completeList(offered, false)
}

// one declares a flag for one of a catalogue.
func one[T any](o *options, f flag, to *T, from catalogue[T]) {
	v := o.add(f, "name", from.name(*to), func(text string) error {
		t, err := from.find(text)
		if err == nil {
			*to = t
		}
		return err
	})
	v.complete, v.enum = completeList(from.names(), false), from.names()
}

// some declares a flag for some of a catalogue, with commas in between.
func some[T any](o *options, f flag, to *[]T, from catalogue[T]) {
	v := o.add(f, "name,...", strings.Join(catalogue[T]{all: *to, name: from.name}.names(), ","), func(text string) error {
		*to = nil
		named := func(list []T, t T) bool {
			return slices.ContainsFunc(list, func(other T) bool { return from.name(other) == from.name(t) })
		}
		parts := split(text)
		if from.join != nil {
			parts = from.join(parts)
		}
		for _, name := range parts {
			if in := from.groups[name]; in != nil {
				for _, t := range from.all {
					if in(t) && !named(*to, t) {
						*to = append(*to, t)
					}
				}
				continue
			}
			t, err := from.find(name)
			if blanks := strings.Fields(name); err != nil && len(blanks) > 1 && slices.Contains(from.names(), blanks[0]) {
				err = fmt.Errorf("names have commas in between: %s", strings.Join(blanks, ","))
			}
			if err == nil && named(*to, t) {
				err = errors.New("it is named twice; --count 2 runs everything twice")
			}
			if err != nil {
				o.mistakes.Add(human.Wrong(f.name, "%q: %v", name, err).In(name, ""))
				continue
			}
			*to = append(*to, t)
		}
		if len(parts) == 0 {
			return errors.New("no name: " + human.Instead("", from.names()))
		}
		return nil
	})
	v.complete, v.enum = completeList(from.names(), false), from.names()
}

func split(text string) (list []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// unknownFlags names the flags that a command does not have. The library has ignored them to read all others. Now it reads
// the arguments again, without effect, and must stop at each of them; the next turn begins with the argument after it.
func (o *options) unknownFlags(c *cobra.Command, args []string) {
	f := c.Flags()
	var good []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			good = append(good, flag.Name)
		}
	})
	f.ParseErrorsAllowlist.UnknownFlags = false
	var unknown *pflag.NotExistError
	for errors.As(f.ParseAll(args, func(*pflag.Flag, string) error { return nil }), &unknown) {
		name, letters := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
		if letters != "" {
			name = name[1:]
		}
		at := slices.IndexFunc(args, func(arg string) bool {
			flag, _, _ := strings.Cut(arg, "=")
			return flag == name || letters != "" && strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, letters)
		})
		o.mistake("", "%s: no such flag%s", name, unknownFlag(c, args[at], good))
		args = args[at+1:]
	}
}

const scenarioFlag = "scenario"

// scenarioFlags declares what picks scenarios.
func (o *options) scenarioFlags() {
	preset := o.plan.Scenarios
	if len(preset) == len(allStrains) {
		o.plan.Scenarios = []scenarios.Scenario{{Name: everyScenario}}
	}
	some(o, flag{axis, scenarioFlag, "what to strain the lock with, a run each:\n" + allScenarios.String() +
		";\nall: those that apply. Without it, --fault or anything about the load makes one run of that"}, &o.plan.Scenarios, allScenarios)
	o.plan.Scenarios = preset
}

// scenarios reads --scenario: all of them, if that was asked for. They say what the load is and what breaks: a flag for
// that is a mistake beside them, or asks for a run without them.
func (o *options) scenarios() {
	p := &o.plan
	if slices.ContainsFunc(p.Scenarios, func(s scenarios.Scenario) bool { return s.Name == everyScenario }) {
		p.Scenarios = allStrains
	}
	named := o.flags.Changed(scenarioFlag)
	o.flags.VisitAll(func(f *pflag.Flag) {
		v, ok := f.Value.(*value)
		switch {
		case !ok || !f.Changed || v.part != load && v.part != instead || len(p.Scenarios) == 0:
		case named && len(p.Services) > 0: // services have a load
		case named:
			o.mistake(f.Name, ": scenarios say what the load is and what breaks; leave it out, or --scenario")
		default:
			p.Scenarios = nil
			o.flags.Lookup(scenarioFlag).Value.(*value).text = ""
		}
	})
	o.explores = slices.ContainsFunc(p.Scenarios, isExplore)
	p.Scenarios = slices.DeleteFunc(slices.Clone(p.Scenarios), isExplore)
}
