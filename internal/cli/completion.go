package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeList completes the last of several names with commas in between; those that stand there are not offered
// again. After an open one no space follows: its text continues.
func completeList(names []string, open bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		head := typed[:strings.LastIndex(typed, ",")+1]
		directive := cobra.ShellCompDirectiveNoFileComp
		if open {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		var all []string
		for _, name := range names {
			if strings.HasPrefix(head+name, typed) && !slices.Contains(strings.Split(head, ","), name) {
				all = append(all, head+name)
			}
		}
		return all, directive
	}
}

// completeSettings offers what a side of a comparison can set.
func completeSettings(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var settings []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*value); ok && v.part != session {
			settings = append(settings, f.Name+"=")
		}
	})
	return completeList(settings, true)(c, args, typed)
}
