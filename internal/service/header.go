package service

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
)

// headerForm is a header as people write it. secretName matches the names of headers whose values are secrets.
var (
	headerForm = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z-]+):[ \t]*([^\r\n\x00]*)$`)
	secretName = regexp.MustCompile(`(?i)auth|cookie|token|key|secret|password|session|credential`)
)

// ParseHeader reads "Name: value". Variables in the value, as in $TOKEN, stay as they are: Resolve fills them in, so that nothing
// that is saved or shown has them. A header that holds a secret must have a variable.
func ParseHeader(text string) (string, error) {
	m := headerForm.FindStringSubmatch(strings.TrimSpace(text))
	switch {
	case m == nil:
		return "", errors.New("a header is NAME: VALUE, as in 'X-Tenant: 7'")
	case secretName.MatchString(m[1]) && !strings.Contains(m[2], "$"):
		return "", errors.New("its value would be shown to everybody: put it into a variable of the environment, as in '" + m[1] + ": $TOKEN'")
	}
	return m[1] + ": " + m[2], nil
}

// Clone is a copy that shares nothing.
func (s *Spec) Clone() *Spec {
	c := *s
	c.Headers, c.Serve, c.Refusal = slices.Clone(s.Headers), slices.Clone(s.Serve), slices.Clone(s.Refusal)
	return &c
}

// Resolve fills in the variables of headers, and names those that are not set. $$ is a dollar sign.
func (s *Spec) Resolve(getenv func(string) string) (missing []string) {
	s.header = http.Header{}
	for _, header := range s.Headers {
		name, v, _ := strings.Cut(header, ": ")
		s.header.Add(name, os.Expand(v, func(name string) string {
			if name == "$" {
				return name
			}
			if getenv == nil || getenv(name) == "" {
				missing = append(missing, "$"+name)
				return ""
			}
			return getenv(name)
		}))
	}
	return missing
}
