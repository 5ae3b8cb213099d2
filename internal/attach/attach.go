// Package attach turns the flags for an existing deployment into an attachment and keeps its secrets hidden. Before a
// load begins, it finds out what the servers refuse and what cannot be measured.
package attach

import (
	"cmp"
	"errors"
	"math"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/topologies"
)

// Flags are the command line's description of an existing deployment. The zero value means that there is no such
// deployment. Everything except Secrets may be shown.
type Flags struct {
	Addrs                              []string // URLs without passwords
	Master                             string
	User, PasswordFile                 string
	SentinelUser, SentinelPasswordFile string
	CA, Cert, Key, ServerName          string
	Map                                []string
	Prefix                             string
	Allow                              []string

	Secrets Secrets           `json:"-"`
	Tell    func(line string) `json:"-"` // receives lines about what was found and done; nil = no listener
}

// Asked reports whether an existing deployment was given.
func (f *Flags) Asked() bool { return len(f.Addrs) > 0 }

// Say passes a line to Tell.
func (f *Flags) Say(line string) {
	if f.Tell != nil {
		f.Tell(line)
	}
}

// Environment variables.
const (
	envUser             = "HAMMERLOCK_REDIS_USER"
	envPassword         = "HAMMERLOCK_REDIS_PASSWORD"
	envSentinelUser     = "HAMMERLOCK_SENTINEL_USER"
	envSentinelPassword = "HAMMERLOCK_SENTINEL_PASSWORD"
)

// Resolve reads files and the environment. It returns the attachment, and all mistakes in the flags.
func (f *Flags) Resolve(sentinels bool) (a *topologies.Attachment, mistakes human.Mistakes) {
	r := resolving{Flags: f}
	a = &topologies.Attachment{Master: f.Master, Prefix: f.Prefix, Allow: f.Allow, Tell: f.Say,
		Map: map[string]string{}}
	file, sentinelFile := r.secret("password-file", f.PasswordFile),
		r.secret("sentinel-password-file", f.SentinelPasswordFile)
	secured := 0
	for _, text := range f.Addrs {
		e, u := r.endpoint(text)
		if u.Scheme == secureScheme {
			secured++
		}
		own, ownPassword := u.User.Username(), f.Secrets.found[u.User.Username()+"@"+u.Host]
		if sentinels {
			e.Login = topologies.NewLogin(cmp.Or(f.SentinelUser, own, f.Secrets.env(envSentinelUser)),
				cmp.Or(sentinelFile, ownPassword, f.Secrets.env(envSentinelPassword)))
			a.Data = topologies.NewLogin(cmp.Or(f.User, f.Secrets.env(envUser), own),
				cmp.Or(file, f.Secrets.env(envPassword), ownPassword))
		} else {
			e.Login = topologies.NewLogin(cmp.Or(f.User, own, f.Secrets.env(envUser)),
				cmp.Or(file, ownPassword, f.Secrets.env(envPassword)))
		}
		a.Endpoints = append(a.Endpoints, e)
	}
	if secured > 0 && secured < len(f.Addrs) {
		r.mistake("addr", ": redis:// and rediss:// are mixed: all addresses are secured, or none is")
	}
	r.tls(a, secured > 0)
	r.addresses(a)
	if sentinels && f.Master == "" {
		r.mistake("master", "is missing: the name that the sentinels know the primary by")
	}
	if !sentinels && f.Master+f.SentinelUser+f.SentinelPasswordFile != "" {
		r.mistake("master", "and --sentinel-... belong to --topology sentinel")
	}
	if f.Prefix == "" || strings.ContainsAny(f.Prefix, "*?[]\\ \n") {
		r.mistake("prefix", "%q: a text without * ? [ ] \\ and spaces, as in app:locks:", f.Prefix)
	}
	for _, name := range f.Allow {
		if _, ok := topologies.Destructive[name]; !ok {
			r.mistake("allow-destructive", "%q: %s", name, human.Instead(name, topologies.DestructiveNames()))
		}
	}
	return a, r.mistakes
}

type resolving struct {
	*Flags
	mistakes human.Mistakes
}

func (r *resolving) mistake(setting, format string, args ...any) {
	r.mistakes.Add(human.Wrong(setting, format, args...))
}

const (
	plainScheme  = "redis"
	secureScheme = "rediss"
	defaultPort  = "6379"
)

// endpoint parses an address. If it is wrong, only its scheme is shown, because the rest may contain a password.
func (r *resolving) endpoint(text string) (e topologies.Endpoint, u *url.URL) {
	bare := !strings.Contains(text, "://")
	if bare {
		text = plainScheme + "://" + text
	}
	u, err := url.Parse(text)
	if err == nil {
		_, left := u.User.Password() // Take did not find this password: the scheme is unknown or missing
		if left || bare && u.User != nil {
			err = errors.New("hidden")
		}
	}
	if err != nil || u.Hostname() == "" || u.Scheme != plainScheme && u.Scheme != secureScheme {
		shown, hint := "", ""
		if err == nil && !bare {
			shown = u.Scheme + "://..."
		}
		if err == nil && (u.Scheme == "sentinel" || u.Scheme == "cluster") {
			hint = "; --topology " + u.Scheme + " says what is there"
		}
		r.mistake("addr", "%s: an address is HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB or rediss://...%s", shown,
			hint)
		return e, &url.URL{}
	}
	if u.RawQuery != "" || u.Fragment != "" {
		r.mistake("addr", "%s: nothing may follow the number of the database", u.Host)
	}
	if port, err := strconv.Atoi(cmp.Or(u.Port(), defaultPort)); err != nil || port < 1 || port > math.MaxUint16 {
		r.mistake("addr", "%s: a port is from 1 to %d, as in %s", u.Host, math.MaxUint16,
			net.JoinHostPort(u.Hostname(), defaultPort))
	}
	e.Addr = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort))
	if db := strings.Trim(u.Path, "/"); db != "" {
		if e.DB, err = strconv.Atoi(db); err != nil || e.DB < 0 {
			r.mistake("addr", "%s: the number of the database follows the /, as in redis://%s/2", u.Host, u.Host)
		}
	}
	return e, u
}

func (r *resolving) secret(flag, path string) string {
	text := r.file(flag, path)
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" && text != nil {
		r.mistake(flag, "%s: the file is empty", path)
	}
	return password
}

func (r *resolving) file(flag, path string) []byte {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		r.mistake(flag, ": %v", err)
		return nil
	}
	return text
}

func (r *resolving) tls(a *topologies.Attachment, secured bool) {
	t := &topologies.TLS{CA: r.file("tls-ca", r.CA), Cert: r.file("tls-cert", r.Cert), Key: r.file("tls-key", r.Key),
		ServerName: r.ServerName}
	if (r.Cert == "") != (r.Key == "") {
		r.mistake("tls-cert", "and --tls-key belong together")
	}
	switch {
	case secured:
		a.TLS = t
		if err := t.Check(); err != nil {
			r.mistake("", "%v", err)
		}
	case r.CA+r.Cert+r.Key+r.ServerName != "":
		r.mistake("tls", "-...: the addresses are not secured; begin them with rediss://")
	}
}

func (r *resolving) addresses(a *topologies.Attachment) {
	for _, pair := range r.Map {
		from, to, ok := strings.Cut(pair, "=")
		_, _, err := net.SplitHostPort(from)
		_, _, failed := net.SplitHostPort(to)
		if !ok || err != nil || failed != nil {
			r.mistake("map", "%q: the announced address and the one from here, as in 10.0.0.3:6379=localhost:7003",
				pair)
			continue
		}
		a.Map[from] = to
	}
}
