package attach

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"unsafe"
)

// Secrets are passwords that were taken out of arguments, and what the environment holds. Nothing prints or encodes
// them.
type Secrets struct {
	found  map[string]string // passwords by user@host:port
	getenv func(string) string
}

// Format implements fmt.Formatter: secrets stay hidden whatever the verb.
func (Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(hidden)") }

// Environ is the environment that another build of the suite needs to get in; an error if it cannot be told all
// passwords.
func (s Secrets) Environ() (all []string, err error) {
	for _, name := range secretNames {
		if value := s.env(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	var one string
	for _, password := range s.found {
		if one != "" && password != one {
			return nil, fmt.Errorf("the addresses have different passwords, another program can be given one: use %s",
				envPassword)
		}
		one = password
	}
	if one != "" {
		all = append(all, envPassword+"="+one) // the last one counts
	}
	return all, nil
}

func (s Secrets) env(name string) string {
	if s.getenv == nil {
		return ""
	}
	return s.getenv(name)
}

// Take takes the passwords out of the URLs in arguments, so that whatever reads or shows the arguments does not have
// them.
func Take(args []string, getenv func(string) string) ([]string, Secrets) {
	s := Secrets{found: map[string]string{}, getenv: getenv}
	clean := make([]string, len(args))
	for i, arg := range args {
		clean[i] = s.Take(arg)
	}
	return clean, s
}

// Take takes the passwords out of the URLs in a text, and keeps them unless these are nobody's secrets.
func (s Secrets) Take(text string) string {
	var b strings.Builder
	rest := 0
	for _, p := range passwords(text) {
		b.WriteString(text[rest : p.from-1]) // without the colon
		rest = p.to
		host := text[p.to+1:]
		if end := strings.IndexAny(host, "/?#,"); end >= 0 {
			host = host[:end]
		}
		if s.found != nil {
			s.found[unescaped(text[p.user:p.from-1])+"@"+host] = unescaped(text[p.from:p.to])
		}
	}
	return strings.ReplaceAll(b.String()+text[rest:], "://@", "://")
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// span is where a password stands in a text, and where the user before it begins.
type span struct{ user, from, to int }

// passwords finds the passwords of URLs of Redis. A password that is not escaped may hold what ends an address: then it
// goes on to the next @.
func passwords(text string) (all []span) {
	for begin := 0; ; {
		i := strings.Index(text[begin:], "://")
		if i < 0 {
			return all
		}
		begin += i + len("://")
		if scheme := text[:begin-len("://")]; !strings.HasSuffix(scheme, plainScheme) &&
			!strings.HasSuffix(scheme, secureScheme) {
			continue
		}
		rest := text[begin:]
		if next := strings.Index(rest, "://"); next >= 0 {
			rest = rest[:next]
		}
		end := strings.IndexAny(rest, "/?#,")
		if end < 0 {
			end = len(rest)
		}
		at := strings.LastIndexByte(rest[:end], '@')
		if at < 0 {
			at = strings.IndexByte(rest, '@')
		}
		if colon := strings.IndexByte(rest[:max(at, 0)], ':'); colon >= 0 {
			all = append(all, span{begin, begin + colon + 1, begin + at})
		}
	}
}

// secretNames are the variables that hold passwords.
var secretNames = []string{envPassword, envSentinelPassword}

// HideEnvironment takes the passwords out of this process's environment, which every process that it starts would
// inherit. It returns what reads the environment as it was.
func HideEnvironment() (getenv func(string) string) {
	hidden := map[string]string{}
	for _, name := range secretNames {
		hidden[name] = os.Getenv(name)
		_ = os.Unsetenv(name) // it fails only for names that cannot be
	}
	return func(name string) string { return cmp.Or(hidden[name], os.Getenv(name)) }
}

// Hide returns a copy of the arguments of this process and overwrites the passwords in the originals, which every user
// of the machine can read as long as it runs. The strings must be those that the process was started with: where they
// are is memory that may be written, unlike that of a constant.
func Hide(args []string) []string {
	copied := make([]string, len(args))
	for i, arg := range args {
		copied[i] = strings.Clone(arg)
		for _, p := range passwords(arg) {
			memory := unsafe.Slice(unsafe.StringData(arg), len(arg))
			for j := p.from; j < p.to; j++ {
				memory[j] = '*'
			}
		}
	}
	return copied
}
