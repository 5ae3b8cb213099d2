// Package kept handles the saved results of long measurements. It runs verify, reads and writes the files with the
// results, and makes tables in documents from these files. So the command "make readme" does not measure anything
// again. Paths are relative to the root of the repository.
package kept

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Made says when something was measured, with which commit and on how many cores. An empty field is unknown.
type Made struct {
	Day    string `json:"day,omitempty"`
	Commit string `json:"commit,omitempty"`
	Cores  int    `json:"cores,omitempty"`
}

// Now returns the values for a measurement made now. A plus sign after the commit means that files were changed
// since.
func Now(ctx context.Context) (Made, error) {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--abbrev=7", "--exclude=*",
		"--dirty=+").Output()
	if err != nil {
		return Made{}, fmt.Errorf("ask git for the commit: %w", err)
	}
	return Made{time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(out)), runtime.NumCPU()}, nil
}

// mostCommits limits the number of commits that Line names.
const mostCommits = 6

// Line returns a sentence that names the days, commits and numbers of cores of measurements.
func Line(all ...Made) string {
	distinct := func(of func(Made) string) []string {
		found := map[string]bool{}
		for _, m := range all {
			found[of(m)] = true
		}
		delete(found, "")
		return slices.Sorted(maps.Keys(found))
	}
	days := distinct(func(m Made) string { return m.Day })
	if len(days) == 0 {
		return "Not measured yet.\n"
	}
	line := "Measured on " + days[0]
	if last := days[len(days)-1]; last != days[0] {
		line = "Measured from " + days[0] + " to " + last
	}
	commits := distinct(func(m Made) string { return m.Commit })
	switch n := len(commits); {
	case n == 0:
		line += ", of a commit that was not noted"
	case n == 1:
		line += ", of commit " + commits[0]
	case n <= mostCommits:
		line += ", of commits " + strings.Join(commits, ", ")
	default:
		line += fmt.Sprintf(", of %d commits, the last %s", n,
			slices.MaxFunc(all, func(a, b Made) int { return cmp.Compare(a.Day, b.Day) }).Commit)
	}
	if cores := distinct(func(m Made) string { return strings.TrimPrefix(fmt.Sprint(m.Cores), "0") }); len(cores) > 0 {
		line += ", on " + strings.Join(cores, " or ") + " cores"
	}
	return line + ".\n"
}

var marked = regexp.MustCompile(`(?s)<!-- generated: (\w+) -->\n.*?<!-- end -->`)

// Put replaces parts of a document; parts maps names to texts. A part lies between <!-- generated: NAME --> and <!--
// end -->. If the document lacks a part, Put returns an error.
func Put(document string, parts map[string]string) (string, error) {
	missing := maps.Clone(parts)
	document = marked.ReplaceAllStringFunc(document, func(part string) string {
		name := marked.FindStringSubmatch(part)[1]
		text, ok := parts[name]
		if !ok {
			return part
		}
		delete(missing, name)
		return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- end -->", name, text)
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("no part %q", slices.Sorted(maps.Keys(missing)))
	}
	return document, nil
}

// WriteParts replaces parts of a file, as Put does for a document.
func WriteParts(file string, parts map[string]string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	now, err := Put(string(text), parts)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(now), 0o644)
}

// Tables returns the generated parts of documents, by file and then by the name of the part.
func Tables() (map[string]map[string]string, error) {
	mutants, err := ReadLines[Mutant](MutantsFile)
	return map[string]map[string]string{
		"docs/MUTANTS.md": {"score": Score(mutants), "survivors": survivors(mutants)},
	}, err
}

// ReadLines reads a file of JSON lines. A missing file counts as empty.
func ReadLines[T any](file string) (all []*T, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		r := new(T)
		if err := json.Unmarshal(line, r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, r)
	}
	return all, err
}

// WriteLines replaces a file of JSON lines. If the program is interrupted, the old file remains unchanged.
func WriteLines[T any](file string, all []*T) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, r := range all {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(file+".new", b.Bytes(), 0o644), os.Rename(file+".new", file))
}

// Ask runs verify, and decodes the JSON that it prints into document. If verify prints none, the error contains
// verify's standard error.
func Ask(ctx context.Context, verify string, args []string, document any) (*os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, verify, append(args, "--json", "--quiet")...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ended := cmd.Run()
	if err := json.Unmarshal(out.Bytes(), document); err != nil {
		return cmd.ProcessState, fmt.Errorf("%v: %s", ended, strings.Join(strings.Fields(errs.String()), " "))
	}
	return cmd.ProcessState, nil
}
