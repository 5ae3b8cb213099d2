package settings

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteList completes the last of several names with commas in between; those that stand there are not offered
// again. After an open one no space follows: its text continues.
func CompleteList(names []string, open bool) cobra.CompletionFunc {
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

// CompleteAfter completes what follows a head.
func CompleteAfter(head string, complete cobra.CompletionFunc, c *cobra.Command, args []string,
	typed string) (all []string, _ cobra.ShellCompDirective) {
	if complete == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, directive := complete(c, args, typed)
	for _, text := range found {
		all = append(all, head+text)
	}
	return all, directive
}
