package hammerlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	// unplain are words to replace by a noun that says who or what is meant: "a waiter", "another worker", "the
	// process was paused".
	unplain = regexp.MustCompile(
		`(?i)\b(whoever|nobody|somebody|anybody|stood still|stands still|by itself|is told|are told|so many|is none)\b`)
	// headless is the beginning of a comment's sentence that has a clause in place of a noun: "What is left is ...".
	headless = regexp.MustCompile(`^(What|Of|Where|One|That)\b`)
)

const (
	widest  = 120 // columns of a line of code, with four for a tab
	longest = 30  // words of a sentence
)

// The bounds of the tree. Each may only fall: TestBounds says to what.
const (
	mostUnplain  = 121
	mostHeadless = 8
	mostLong     = 22 // sentences of documents
	mostWide     = 0
)

// Patterns that sentence and prose need.
var (
	sentenceEnd = regexp.MustCompile(`[.!?][)"]*\s+`)
	generatedIn = regexp.MustCompile(`(?s)<!-- generated: .*?<!-- end -->\n`)
	fencedIn    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	listItem    = regexp.MustCompile(`^\s*([*-]|\d+\.) `)
	codeIn      = regexp.MustCompile("`[^`]*`")
	linkIn      = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// prose returns the paragraphs, list items and table cells of a document, without code, headings and generated
// parts. A piece of code counts as one word, and a link as its text.
func prose(document string) (paragraphs []string) {
	text := fencedIn.ReplaceAllString(generatedIn.ReplaceAllString(document, "\n"), "\n")
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			plain := codeIn.ReplaceAllString(strings.Join(paragraph, " "), "code")
			paragraphs = append(paragraphs, linkIn.ReplaceAllString(plain, "$1"))
		}
		paragraph = nil
	}
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "      ") || len(paragraph) == 0 && strings.HasPrefix(line, "    ")
		switch line = strings.TrimRight(line, "\n"); {
		case strings.TrimSpace(line) == "" || indented || strings.HasPrefix(line, "#"):
			end()
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(line, "|") {
				paragraph = []string{cell}
				end()
			}
		case listItem.MatchString(line):
			end()
			paragraph = []string{listItem.ReplaceAllString(line, "")}
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	end()
	return paragraphs
}

// longSentences counts the sentences of a document that have more than longest words.
func longSentences(document string) (n int) {
	for _, paragraph := range prose(document) {
		for _, sentence := range sentenceEnd.Split(paragraph, -1) {
			if len(strings.Fields(sentence)) > longest {
				n++
			}
		}
	}
	return n
}

// headlessSentences counts the sentences of a file's comments that begin without a noun.
func headlessSentences(t *testing.T, file string, text []byte) (n int) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.Comments {
		for _, sentence := range commentSentences(group) {
			if headless.MatchString(sentence) {
				n++
			}
		}
	}
	return n
}

func commentSentences(group *ast.CommentGroup) (all []string) {
	for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
		all = append(all, sentenceEnd.Split(strings.Join(strings.Fields(paragraph), " "), -1)...)
	}
	return all
}

func wideLines(text []byte) (n int) {
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\t", "    ")) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > widest {
			n++
		}
	}
	return n
}

// bounded are the code and the documents of the tree.
func bounded(t *testing.T, each func(file string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		hidden := file != "." && strings.HasPrefix(file, ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "node_modules" || file == "bin" ||
			file == "results/runs"):
			return filepath.SkipDir
		case filepath.Ext(file) != ".md" && filepath.Ext(file) != ".go":
			return nil
		}
		text, err := os.ReadFile(file)
		each(filepath.ToSlash(file), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBounds: what is hard to read becomes less. docs/record quotes others, and of tests only the width counts.
func TestBounds(t *testing.T) {
	var words, heads, long, wide int
	bounded(t, func(file string, text []byte) {
		if filepath.Ext(file) == ".go" {
			wide += wideLines(text)
		}
		if isTest(file) {
			return
		}
		words += len(unplain.FindAll(text, -1))
		switch {
		case filepath.Ext(file) == ".go":
			heads += headlessSentences(t, file, text)
		case !strings.HasPrefix(file, "docs/record/"):
			long += longSentences(string(text))
		}
	})
	for _, b := range []struct {
		name            string
		got, most, play int
	}{
		{"words that " + unplain.String() + " matches (mostUnplain)", words, mostUnplain, 40},
		{"sentences of comments that begin with What, Of, Where, One or That (mostHeadless)", heads, mostHeadless, 10},
		{"sentences of documents with more than 30 words (mostLong)", long, mostLong, 5},
		{"lines of code with more than 120 columns (mostWide)", wide, mostWide, 0},
	} {
		if b.got > b.most || b.got < b.most-b.play {
			t.Errorf("%d %s: at most %d; if there are fewer now, lower the bound", b.got, b.name, b.most)
		}
	}
}
