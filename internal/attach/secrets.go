package attach

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"unsafe"
)

// Secrets are passwords that were taken out of arguments, and what the environment holds. Nothing prints or encodes
// them.
type Secrets struct {
	found  map[string]string    // passwords by user@host:port
	told   map[mention][]string // as they were written, with a colon, or empty without one: of each time it was named
	getenv func(string) string
}

// mention is an address without its password, in what a setting was given; without a setting in the other arguments.
type mention struct{ setting, address string }

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
	s := Secrets{found: map[string]string{}, told: map[mention][]string{}, getenv: getenv}
	clean := make([]string, len(args))
	last, setting, flags := "", "", true
	for i, arg := range args {
		flags = flags && arg != "--"
		setting, _, _ = strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch name, isFlag := strings.CutPrefix(last, "--"); {
		case !flags, !strings.HasPrefix(arg, "--") && (!isFlag || strings.Contains(last, "=")):
			setting = ""
		case !strings.HasPrefix(arg, "--"):
			setting = name
		}
		clean[i], last = s.Take(setting, arg), arg
	}
	return clean, s
}

// Take takes the passwords out of the URLs in what a setting is given, and keeps them unless these are nobody's
// secrets.
func (s Secrets) Take(setting, text string) string {
	var b strings.Builder
	rest := 0
	for _, p := range addresses(text) {
		m := mention{setting, host(text[p.user:])}
		if p.from > 0 {
			b.WriteString(text[rest : p.from-1]) // without the colon
			rest = p.to
			m.address = strings.TrimPrefix(text[p.user:p.from-1]+"@"+host(text[p.to+1:]), "@")
		}
		if s.found == nil {
			continue
		}
		if p.from > 0 {
			s.found[unescaped(text[p.user:p.from-1])+"@"+host(text[p.to+1:])] = unescaped(text[p.from:p.to])
			s.told[m] = append(s.told[m], text[p.from-1:p.to])
		} else {
			s.told[m] = append(s.told[m], "")
		}
	}
	return strings.ReplaceAll(b.String()+text[rest:], "://@", "://")
}

// Clean is a text without the passwords of its URLs.
func Clean(text string) string { return Secrets{}.Take("", text) }

// host is what an address begins with, up to its path.
func host(text string) string {
	if end := strings.IndexAny(text, "/?#,"); end >= 0 {
		return text[:end]
	}
	return text
}

// Whole puts the passwords back into what a setting was given, for what is executed and shown nowhere.
func (s Secrets) Whole(setting string, clean []string) (whole []string) {
	next := map[mention]int{}
	for _, text := range clean {
		var b strings.Builder
		rest := 0
		for _, p := range addresses(text) {
			m := mention{setting, host(text[p.user:])}
			list := s.told[m]
			if len(list) == 0 {
				m.setting = ""
				list = s.told[m]
			}
			if len(list) == 0 {
				continue
			}
			password := list[min(next[m], len(list)-1)]
			next[m]++
			user, _, named := strings.Cut(m.address, "@")
			if !named {
				user = ""
			}
			b.WriteString(text[rest:p.user] + user + password)
			if rest = p.user + len(user); password != "" && !named {
				b.WriteByte('@')
			}
		}
		whole = append(whole, b.String()+text[rest:])
	}
	return whole
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// placeholder stands for a password that the suite fills in.
const placeholder = "{password}"

// span is where a password stands in a text, if there is one, and where the user before it begins.
type span struct{ user, from, to int }

// passwords finds the passwords of URLs of Redis.
func passwords(text string) []span {
	return slices.DeleteFunc(addresses(text), func(p span) bool { return p.from == 0 })
}

// addresses finds the addresses of URLs of Redis. A password that is not escaped may hold what ends an address: then it
// goes on to the next @.
func addresses(text string) (all []span) {
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
		p := span{user: begin}
		colon := strings.IndexByte(rest[:max(at, 0)], ':')
		if colon >= 0 && rest[colon+1:at] != placeholder {
			p.from, p.to = begin+colon+1, begin+at
		}
		all = append(all, p)
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
