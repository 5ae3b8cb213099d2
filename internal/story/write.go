package story

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var texts embed.FS

var templates = template.Must(template.ParseFS(texts, "*.tmpl"))

// Language is the name of the template for a file by its extension; an error names those that there are.
func Language(file string) (string, error) {
	if name := strings.TrimPrefix(filepath.Ext(file), ".") + ".tmpl"; templates.Lookup(name) != nil {
		return name, nil
	}
	return "", fmt.Errorf("%s: a test is a file of go, js or py, as in lock_test.go", file)
}

// Write returns the story as a test. Calls is the source that calls the library, in the same language.
func (s *Story) Write(language, calls string) ([]byte, error) {
	var text bytes.Buffer
	err := templates.ExecuteTemplate(&text, language, view{s, strings.TrimSpace(bare(calls)) + "\n"})
	if err != nil || language != "go.tmpl" {
		return text.Bytes(), err
	}
	return format.Source(text.Bytes())
}

// bare is a file of Go without what stands before its imports: the test has a package clause of its own.
func bare(calls string) string {
	const clause = "package lock_test\n"
	if _, after, found := strings.Cut(calls, clause); found {
		return after
	}
	return calls
}

// view is a story as templates read it.
type view struct {
	*Story
	Calls string
}

// Must is the fault of a step whose acquire must be granted.
func (view) Must() string { return must }

// Name names the test in Go.
func (v view) Name() (name string) {
	for word := range strings.SplitSeq(v.Cause, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// Snake names the test in Python.
func (v view) Snake() string { return strings.ReplaceAll(v.Cause, "-", "_") }

// Comment is the story in words.
func (v view) Comment() []string {
	all := []string{v.Checker + ": " + v.Summary, ""}
	for _, line := range v.Told {
		all = append(all, "  "+line)
	}
	return append(all, "", "Written by Hammerlock (verify export --test) of "+v.Lock+":", "  "+v.Command, "",
		"The test tells the story more slowly. It needs a redis-server on the PATH, and nothing of Hammerlock. Each client speaks to the",
		"server through a proxy of its own, which holds, cuts or refuses the messages that the story names. The test fails if two clients",
		"hold the lock at once, or if a call succeeds that must be refused.")
}
