package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/faults"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

func completeSettings(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names := human.Names(settings.Having(c.Flags(), ofPlan), func(name string) string { return name + "=" })
	at := strings.LastIndex(typed, ",") + 1
	if name, text, ok := strings.Cut(typed[at:], "="); ok && slices.Contains(names, name+"=") {
		return settings.CompleteAfter(typed[:at]+name+"=", settings.ValueOf(c.Flags().Lookup(name)).Complete, c, args,
			text)
	}
	return settings.CompleteList(names, true)(c, args, typed)
}

// completeFaults completes a list of faults. After an @, it completes points, which are places in a visit at which a
// fault can begin.
func completeFaults(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if at := strings.LastIndex(typed, "@"); at > strings.LastIndex(typed, ",") {
		return settings.CompleteAfter(typed[:at+1], settings.CompleteList(faults.Points, false), c, args, typed[at+1:])
	}
	return settings.CompleteList(faultNames(), false)(c, args, typed)
}
