package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/driver"
	"hammerlock/internal/glossary"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// explainColumns is the width of an explanation in columns.
const explainColumns = 98

func (e Env) explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain [WORD...]",
		Short: "say what a word means that stands on a screen: a number, a cause, or anything of a catalogue",
		Example: "  explain random waiter\n  explain service-loss plain-del\n" +
			"  explain metrics      # the names that gates, compare and ab take\n  explain              # all words",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return explained(e.knows()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	o := newOptions(c, e.benchPlan())
	return e.command(c, o, e.simple(o, func(_ context.Context, args []string) error { return e.explain(args) }))
}

func (e Env) explain(args []string) error {
	p := &human.Printer{W: e.Stdout}
	if len(args) == 0 {
		for _, g := range glossary.Groups {
			p.Line("%s:\n", g)
			for _, w := range glossary.All {
				if w.Group == g {
					p.Line("%s", paragraph(w.Name, w.Means))
				}
			}
			p.Line("")
		}
		return p.Err
	}
	if text, ok := meaning(e.knows(), strings.Join(args, " ")); ok { // a term may contain spaces
		p.Line("%s", text)
		return p.Err
	}
	var unknown []error
	for _, name := range args {
		if text, ok := meaning(e.knows(), name); ok {
			p.Line("%s", text)
		} else {
			unknown = append(unknown,
				usage("%q is no word of the suite%s; explain prints all words, explain metrics the names of numbers",
					name, human.Meant(strings.ToLower(name),
						slices.DeleteFunc(explained(e.knows()), func(word string) bool { return len(word) < 4 }))))
		}
	}
	return errors.Join(append(unknown, p.Err)...)
}

// metricsWord is the word that "bench explain" answers with a list of all metrics.
const metricsWord = "metrics"

// meaning explains a term of the glossary, or a name such as that of a lock. It returns false if the word is unknown.
func meaning(k crew.Catalogue, name string) (text string, found bool) {
	var all []string
	add := func(kind, doc string) { all = append(all, paragraph(strings.ToLower(name)+" ("+kind+")", doc)) }
	for _, w := range glossary.Find(strings.ToLower(name)) {
		all = append(all, paragraph(w.Name, w.Means))
	}
	if m, err := results.FindMetric(name); err == nil {
		says := "Unit: " + sentence(m.Says())
		for _, w := range glossary.Find(m.Word) {
			if w.Group != glossary.Causes {
				says += " " + w.Means
			}
		}
		add("metric", says)
	}
	named(k.Locks, name, aboutLock, "lock", add)
	if f, ok := faults.Find(name); ok {
		add("fault", sentence(f.Doc))
	}
	named(allStrains, name, func(s scenarios.Scenario) (string, string) { return s.Name, s.Doc }, "scenario", add)
	named(slices.Concat(checker.All, checker.OfServices), name,
		func(c checker.Checker) (string, string) { return c.Name, c.Doc }, "check", add)
	named(history.AllClaims, name, func(c history.Claim) (string, string) { return c.Name, c.Says }, "claim", add)
	named(ofDrivers(), name, func(c [2]string) (string, string) { return c[0], c[1] }, "claim of a driver", add)
	named(k.Topologies, name, func(s topologies.Spec) (string, string) { return s.Name, s.Doc }, "topology", add)
	named(k.Counters, name, func(s workload.CounterSpec) (string, string) { return s.Name, s.Doc }, "counter", add)
	if name == metricsWord {
		var text strings.Builder
		if results.WriteMetrics(&text) == nil { // an error is impossible: the text is in memory
			all = append(all, "metrics (names that --gate, --show and --slo take)\n"+strings.TrimSuffix(text.String(),
				"\n"))
		}
	}
	return strings.Join(all, "\n"), len(all) > 0
}

// ofDrivers returns pairs of a claim and its description. It has only claims that locks in Go cannot make, but locks
// in separate programs (drivers) can.
func ofDrivers() [][2]string {
	return slices.DeleteFunc(driver.Claims(), func(c [2]string) bool {
		return slices.ContainsFunc(history.AllClaims, func(of history.Claim) bool { return of.Name == c[0] })
	})
}

func aboutLock(s locks.Spec) (name, doc string) {
	doc = sentence(s.Doc) + " From: " + sentence(s.Source)
	if s.Broken != "" {
		doc += " Broken: " + sentence(s.Broken)
	} else if s.Assumes != "" {
		doc += " Safe if " + sentence(s.Assumes)
	}
	return s.Name, doc
}

// The function named looks for a name in a list. If the list has the name, named calls add with the kind and the
// description.
func named[T any](all []T, name string, of func(T) (name, doc string), kind string, add func(kind, doc string)) {
	for _, t := range all {
		if is, doc := of(t); is == name {
			add(kind, sentence(doc))
		}
	}
}

// The function explained returns all words that "bench explain" knows, sorted.
func explained(k crew.Catalogue) (all []string) {
	for _, w := range glossary.All {
		all = append(all, w.Names()...)
	}
	all = slices.Concat(all, []string{metricsWord}, allMetrics.Names(), locksOf(k).Names()[1:], faults.Names(),
		topologiesOf(k).Names(),
		allScenarios.Names()[1:], countersOf(k).Names(),
		human.Names(slices.Concat(checker.All, checker.OfServices), func(c checker.Checker) string { return c.Name }),
		human.Names(history.AllClaims, func(c history.Claim) string { return c.Name }),
		human.Names(ofDrivers(), func(c [2]string) string { return c[0] }))
	slices.Sort(all)
	return slices.Compact(all)
}

// sentence adds a full stop to a line of a catalogue, if it lacks one.
func sentence(doc string) string {
	if doc == "" || strings.HasSuffix(doc, ".") {
		return doc
	}
	return doc + "."
}

// paragraph returns a name on one line, and its meaning below, indented and wrapped.
func paragraph(name, means string) string {
	return name + "\n    " + strings.Join(human.Wrap(means, explainColumns-4), "\n    ")
}
