package service

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"hammerlock/topologies"
)

// headerForm matches a header line.
var headerForm = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z-]+):[ \t]*([^\r\n\x00]*)$`)

// ParseHeader parses "Name: value". It keeps variables in the value, as in $TOKEN; Resolve fills them in, so that
// secrets are neither saved nor shown. A secret header must have a variable.
func ParseHeader(text string) (string, error) {
	m := headerForm.FindStringSubmatch(strings.TrimSpace(text))
	switch {
	case m == nil:
		return "", errors.New("a header is NAME: VALUE, as in 'X-Tenant: 7'")
	case topologies.SecretName.MatchString(m[1]) && !strings.Contains(m[2], "$"):
		return "", errors.New("its value would be shown to everybody: put it into a variable of the environment, " +
			"as in '" + m[1] + ": $TOKEN'")
	}
	return m[1] + ": " + m[2], nil
}

// Clone returns a deep copy.
func (s *Spec) Clone() *Spec {
	c := *s
	c.Headers, c.Serve, c.Refusal = slices.Clone(s.Headers), slices.Clone(s.Serve), slices.Clone(s.Refusal)
	w := &c.Wire
	w.Locks, w.Data, w.Env, c.Env = slices.Clone(w.Locks), slices.Clone(w.Data), slices.Clone(w.Env),
		slices.Clone(s.Env)
	return &c
}

// Resolve fills in the variables of headers and queries, and returns the names of unset ones. $$ is a dollar sign.
func (s *Spec) Resolve(getenv func(string) string) (missing []string) {
	s.header, s.sent = http.Header{}, map[string]string{}
	s.hidden = nil
	fill := func(text string) string {
		return os.Expand(text, func(name string) string {
			if name == "$" {
				return name
			}
			if getenv == nil || getenv(name) == "" {
				missing = append(missing, "$"+name)
				return ""
			}
			s.hidden = append(s.hidden, getenv(name), "$"+name)
			return getenv(name)
		})
	}
	for _, header := range s.Headers {
		name, v, _ := strings.Cut(header, ": ")
		s.header.Add(name, fill(v))
	}
	for _, address := range slices.Concat(s.Visit.URLs, s.Count.URLs) {
		if before, query, ok := strings.Cut(address, "?"); ok && strings.Contains(query, "$") {
			s.sent[address] = before + "?" + fill(query)
		}
	}
	return missing
}

// secretQuery is the name of a query parameter with a secret value in the address itself; empty = none.
func secretQuery(u *url.URL) string {
	for name, values := range u.Query() {
		if name != "key" && topologies.SecretName.MatchString(name) &&
			!strings.Contains(strings.Join(values, ""), "$") {
			return name
		}
	}
	return ""
}

// login and queryValue match the secrets that a rejected address may contain.
var (
	login      = regexp.MustCompile(`://\S*@`)
	queryValue = regexp.MustCompile(`([?&][^=&\s"]*=)[^&\s"]+`)
)

// Masked returns a text without the users, passwords and parameter values of its addresses.
func Masked(text string) string {
	return queryValue.ReplaceAllString(login.ReplaceAllString(text, "://...@"), "$1...")
}
