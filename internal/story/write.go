package story

import (
	"embed"
	"fmt"
	"go/format"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed *.tmpl
var texts embed.FS

// languages are the test languages, by file extension.
var languages = map[string]struct {
	comment, step string // the prefix of a comment line, and the format of a step
	yes, no       string
	name          func(cause string) string // of the test function
	time          func(time.Duration) string
}{
	"go": {"//", "\t{ %d, %q, %q, %q },\n", "true", "false", camel, ms},
	"js": {"//", "  [%d, %q, %q, %q],\n", "true", "false", camel, ms},
	"py": {"#", "    (%d, %q, %q, %q),\n", "True", "False", snake, seconds},
}

// Language returns a file's language by its extension. Its error names the languages.
func Language(file string) (string, error) {
	name := strings.TrimPrefix(filepath.Ext(file), ".")
	if _, known := languages[name]; !known {
		return "", fmt.Errorf("%s: a test is a file of go, js or py, as in lock_test.go", file)
	}
	return name, nil
}

// Write returns the story as a test. The argument calls is source code that calls the library, in the same language.
func (s *Story) Write(language, calls string) ([]byte, error) {
	l := languages[language]
	frame, err := texts.ReadFile(language + ".tmpl")
	if err != nil {
		return nil, err
	}
	var comment, steps strings.Builder
	for _, line := range s.comment() {
		comment.WriteString(strings.TrimRight(l.comment+" "+line, " ") + "\n")
	}
	for _, step := range s.Steps {
		fmt.Fprintf(&steps, l.step, step.At.Milliseconds(), step.Who, step.Do, step.Fault)
	}
	owned := l.no
	if s.Owned {
		owned = l.yes
	}
	name := testPackage
	if language == "go" {
		name, calls = bare(calls)
	}
	text := strings.NewReplacer("{{comment}}", comment.String(), "{{calls}}", strings.TrimSpace(calls)+"\n",
		"{{package}}", name,
		"{{lease}}", l.time(s.Lease),
		"{{linger}}", l.time(s.Linger), "{{owned}}", owned, "{{steps}}", steps.String(), "{{name}}", l.name(s.Cause),
		"{{must}}", must).Replace(string(frame))
	if language != "go" {
		return []byte(text), nil
	}
	return format.Source([]byte(text))
}

// testPackage is the package of a Go test if the given calls have no package clause.
const testPackage = "lock_test"

var packageClause = regexp.MustCompile(`(?m)^package[ \t]+(\w+).*$`)

// bare removes a Go file's package clause and all lines before it. It also returns the package's name, which the test
// takes over.
func bare(calls string) (name, rest string) {
	at := packageClause.FindStringSubmatchIndex(calls)
	if at == nil {
		return testPackage, calls
	}
	return calls[at[2]:at[3]], calls[at[1]:]
}

func camel(cause string) (name string) {
	for word := range strings.SplitSeq(cause, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

func snake(cause string) string { return strings.ReplaceAll(cause, "-", "_") }

func ms(t time.Duration) string { return strconv.FormatInt(t.Milliseconds(), 10) }

func seconds(t time.Duration) string { return fmt.Sprint(t.Seconds()) }

func (s *Story) comment() []string {
	all := []string{s.Checker + ": " + s.Summary, ""}
	for _, line := range s.Told {
		all = append(all, "  "+line)
	}
	return append(all, "", "Written by Hammerlock (verify export --test) of "+s.Lock+":", "  "+s.Command, "",
		"The test tells the story more slowly. It needs a redis-server on the PATH, and nothing of Hammerlock. "+
			"Each client speaks to the",
		"server through a proxy of its own, which holds, cuts or refuses the messages that the story names. "+
			"The test fails if two clients",
		"hold the lock at once, or if a call succeeds that must be refused.")
}
