package topologies

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// urlPassword matches the password of a URL. secretVariable matches names of variables whose values are secrets.
var (
	urlPassword    = regexp.MustCompile(`://[^\s:@/]*:([^\s@]+)@`)
	secretVariable = regexp.MustCompile(`(?i)password|passwd|secret|token|credential|auth`)
)

// Secrets are words that the suite shows nowhere, such as passwords.
type Secrets []string

// secretsOf finds the secrets that a program is started with: the passwords of URLs in its command and environment, and
// the values of variables with the name of a secret. Each variable is NAME=value.
func secretsOf(command string, env []string) (s Secrets) {
	for _, text := range append(env, command) {
		for _, m := range urlPassword.FindAllStringSubmatch(text, -1) {
			s.Add(m[1])
		}
		if name, value, _ := strings.Cut(text, "="); text != command && secretVariable.MatchString(name) {
			s.Add(value)
		}
	}
	return s
}

// Add adds a word, as it is and as it stands in URLs. An empty word is not added.
func (s *Secrets) Add(word string) {
	for _, w := range []string{word, url.QueryEscape(word), url.PathEscape(word)} {
		if w != "" && !slices.Contains(*s, w) {
			*s = append(*s, w)
		}
	}
	if plain, err := url.PathUnescape(word); err == nil && plain != "" && !slices.Contains(*s, plain) {
		*s = append(*s, plain)
	}
}

// Hide returns a text with stars in place of the secrets.
func (s Secrets) Hide(text string) string {
	for _, word := range s {
		text = strings.ReplaceAll(text, word, "***")
	}
	return text
}
