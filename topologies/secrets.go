package topologies

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// SecretName matches names of headers, parameters and variables whose values are secret. urlPassword matches the
// password of a URL.
var (
	SecretName  = regexp.MustCompile(`(?i)auth|cookie|token|key|secret|passw|session|credential`)
	urlPassword = regexp.MustCompile(`://[^\s:@/]*:([^\s@]+)@`)
)

// Secrets are words that the suite shows nowhere, such as passwords.
type Secrets []string

// secretsOf finds the secrets that a program is started with. These are the passwords of URLs in its command and
// environment, and the values of variables with the name of a secret. Each variable is NAME=value.
func secretsOf(command string, env []string) (s Secrets) {
	for _, text := range slices.Concat(env, []string{command}) {
		for _, m := range urlPassword.FindAllStringSubmatch(text, -1) {
			s.Add(m[1])
		}
	}
	for _, variable := range env {
		if name, value, _ := strings.Cut(variable, "="); SecretName.MatchString(name) {
			s.Add(value)
		}
	}
	return s
}

// Add adds a word, both as it is and as it looks in URLs. An empty word is ignored.
func (s *Secrets) Add(word string) {
	plain, err := url.PathUnescape(word)
	if err != nil {
		plain = word
	}
	for _, w := range []string{word, url.QueryEscape(word), url.PathEscape(word), plain} {
		if w != "" && !slices.Contains(*s, w) {
			*s = append(*s, w)
		}
	}
	// the longest first: a secret may be a part of another
	slices.SortStableFunc(*s, func(a, b string) int { return len(b) - len(a) })
}

// Hide returns a text with stars in place of the secrets.
func (s Secrets) Hide(text string) string {
	for _, word := range s {
		text = strings.ReplaceAll(text, word, "***")
	}
	return text
}
