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

// Secrets are the passwords taken out of arguments, and those in the environment. They are never printed or encoded.
type Secrets struct {
	found  map[string]string    // passwords by user@host:port
	told   map[mention][]string // the ":password" of each occurrence in the arguments, in order; "" = none
	getenv func(string) string
}

// mention is an address, without its password, that occurs in the value of a setting. The setting is empty for an
// address in another argument.
type mention struct{ setting, address string }

// Format implements fmt.Formatter: secrets stay hidden with every verb.
func (Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(hidden)") }

// Environ returns the environment variables that give another program of the suite access to the servers. It returns an
// error if the addresses have different passwords.
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
		all = append(all, envPassword+"="+one) // the last value applies
	}
	return all, nil
}

func (s Secrets) env(name string) string {
	if s.getenv == nil {
		return ""
	}
	return s.getenv(name)
}

// Take removes the passwords from URLs in arguments, so that code that reads or shows the arguments does not see them.
// It returns the other parts of the arguments, and the passwords.
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

// Take removes the passwords from the URLs in a setting's value, and stores them in s. A zero Secrets stores nothing.
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

// Clean returns a text without the passwords in its URLs.
func Clean(text string) string { return Secrets{}.Take("", text) }

// host returns the part of an address before its path.
func host(text string) string {
	if end := strings.IndexAny(text, "/?#,"); end >= 0 {
		return text[:end]
	}
	return text
}

// Whole puts the passwords back into the values of a setting. The result is for execution only and must not be shown.
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

// span has positions in a text: user is where an address begins after its scheme, and from and to enclose its
// password. The field from is 0 if the address has no password.
type span struct{ user, from, to int }

// passwords finds the passwords in Redis URLs.
func passwords(text string) []span {
	return slices.DeleteFunc(addresses(text), func(p span) bool { return p.from == 0 })
}

// addresses finds the addresses in Redis URLs. An unescaped password may contain a character that normally ends an
// address. Then the address goes on to the next @.
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

// HideEnvironment removes the passwords from this process's environment, which child processes would inherit. It
// returns a function that reads the original environment.
func HideEnvironment() (getenv func(string) string) {
	hidden := map[string]string{}
	for _, name := range secretNames {
		hidden[name] = os.Getenv(name)
		_ = os.Unsetenv(name) // it fails only for invalid names
	}
	return func(name string) string { return cmp.Or(hidden[name], os.Getenv(name)) }
}

// Hide returns a copy of this process's arguments and overwrites the passwords in the originals. Every user of the
// machine can read the originals while the process runs. The strings must be the original arguments: unlike
// constants, they are in writable memory.
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
