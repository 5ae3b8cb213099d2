package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/faults"
	"hammerlock/internal/human"
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

// completeSettings offers what a side of a comparison can set, and the values of what it sets.
func completeSettings(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	settings := human.Names(flagNames(c.Flags(), ofPlan), func(name string) string { return name + "=" })
	at := strings.LastIndex(typed, ",") + 1
	if name, text, ok := strings.Cut(typed[at:], "="); ok && slices.Contains(settings, name+"=") {
		return completeAfter(typed[:at]+name+"=", c.Flags().Lookup(name).Value.(*value).complete, c, args, text)
	}
	return completeList(settings, true)(c, args, typed)
}

// completeAfter completes what follows a head.
func completeAfter(head string, complete cobra.CompletionFunc, c *cobra.Command, args []string, typed string) (all []string, _ cobra.ShellCompDirective) {
	if complete == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, directive := complete(c, args, typed)
	for _, text := range found {
		all = append(all, head+text)
	}
	return all, directive
}

// completeFaults completes names of faults, and points after an @.
func completeFaults(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if at := strings.LastIndex(typed, "@"); at > strings.LastIndex(typed, ",") {
		return completeAfter(typed[:at+1], completeList(faults.Points, false), c, args, typed[at+1:])
	}
	return completeList(faultNames(), false)(c, args, typed)
}
