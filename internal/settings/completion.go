package settings

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteList returns a shell completion for lists with commas. It completes the last name, and offers no name
// twice. If the argument open is true, the shell adds no space, because more text may follow the name.
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

// CompleteAfter completes the argument typed, which follows the text head on the command line. It calls the function
// complete, and puts head before each result.
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
