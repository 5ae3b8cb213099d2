package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// completions lets a shell complete the values of flags. What a command does not have is left out.
func completions(c *cobra.Command) {
	for flag, names := range map[string]func() []string{
		"topology":   topologies.Names,
		"lock":       lockNames,
		"fault":      faultNames,
		"counter":    workload.CounterNames,
		"show":       metricNames,
		"by":         compare.Groupings,
		"over":       func() []string { return searchable },
		"gate":       metricNames,
		"slo":        metricNames,
		"arrivals":   func() []string { return texts(workload.AllArrivals) },
		"popularity": func() []string { return texts(workload.AllPopularities) },
		"profile":    func() []string { return texts(topologies.Profiles) },
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, completeList(names, flag == "gate" || flag == "slo")) // fails only if done twice
		}
	}
}

func texts[T ~string](all []T) (list []string) {
	for _, t := range all {
		list = append(list, string(t))
	}
	return list
}

func faultNames() []string {
	all := []string{faults.Auto, faults.None}
	for _, f := range faults.All {
		all = append(all, f.Name)
	}
	return all
}

func metricNames() (all []string) {
	for _, m := range results.Metrics {
		all = append(all, m.Name)
	}
	return all
}

// completeList completes the last of several names with commas in between; those that stand there are not offered
// again. An open one goes on after the name.
func completeList(names func() []string, open bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		head := ""
		if at := strings.LastIndex(typed, ","); at >= 0 {
			head = typed[:at+1]
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if open {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		var all []string
		for _, name := range names() {
			if strings.HasPrefix(head+name, typed) && !slices.Contains(strings.Split(head, ","), name) {
				all = append(all, head+name)
			}
		}
		return all, directive
	}
}

// completeRuns offers the saved runs, and directories.
func completeRuns(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, dir := range []string{harness.Default().Out, filepath.Dir(typed)} {
		files, _ := filepath.Glob(filepath.Join(dir, "*", results.RunFile))
		for _, file := range files {
			if run := filepath.Dir(file); strings.HasPrefix(run, typed) && !slices.Contains(all, run) {
				if _, err := os.Stat(run); err == nil {
					all = append(all, run)
				}
			}
		}
	}
	return all, cobra.ShellCompDirectiveDefault
}
