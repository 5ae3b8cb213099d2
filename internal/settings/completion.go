package settings

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteList completes the last name of a comma-separated list and does not offer a name twice. If open is true, no
// space follows, because the text of an item may go on.
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

// CompleteAfter completes the text after a head.
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
