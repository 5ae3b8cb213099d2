package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manual writes the pages of a command and those below it to a directory: bench man DIR.
func (e Env) manual(root *cobra.Command) int {
	if len(e.Args) != 2 {
		_, _ = fmt.Fprintf(e.Stderr, "error: %s man DIR: writes the manual pages to a directory\n", root.Name())
		return Usage
	}
	err := os.MkdirAll(e.Args[1], 0o755)
	if err == nil {
		root.DisableAutoGenTag = true
		err = doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Hammerlock " + root.Version, Manual: "Hammerlock"}, e.Args[1])
	}
	if err != nil {
		_, _ = fmt.Fprintln(e.Stderr, "error:", err)
		return Broken
	}
	return Passed
}
