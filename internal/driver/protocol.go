// Package driver runs a lock in its own program, which exchanges JSON lines with the suite on standard input and
// output. docs/DRIVERS.md describes the protocol. The package starts and ends the program, makes sure that it can
// neither block nor outlive the suite, and says what is certain about each call.
package driver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// The first line of a program is its greeting, with the version of the protocol.
const (
	greeting = "hammerlock-driver"
	Protocol = 1
)

// maxLine is the largest length of a line, with the newline.
const maxLine = 64 << 10

// request is a line that the suite writes.
type request struct {
	ID       uint64   `json:"id"`
	Op       string   `json:"op"`
	Worker   int      `json:"worker,omitempty"`
	Key      string   `json:"key,omitempty"`
	Keys     []string `json:"keys,omitempty"` // to acquire several keys, of which the first is Key
	Mode     string   `json:"mode,omitempty"` // to acquire a readers-writer lock: reading or writing
	Permits  int      `json:"permits,omitempty"`
	TTL      int64    `json:"ttl_ms,omitempty"`
	Wait     *int64   `json:"wait_ms,omitempty"`
	Hold     uint64   `json:"hold,omitempty"`
	Of       uint64   `json:"of,omitempty"`
	Topology string   `json:"topology,omitempty"`
	Sites    []site   `json:"sites,omitempty"`
	Lease    int64    `json:"lease_ms,omitempty"`
}

// site is a place where a lock can live: the address of a server, or those of sentinels or of a cluster's nodes.
type site struct {
	Host     string    `json:"host"`
	Port     int       `json:"port"`
	User     string    `json:"user,omitempty"`
	Password string    `json:"pass,omitempty"`
	DB       int       `json:"db,omitempty"`
	Master   string    `json:"master,omitempty"`
	Cluster  bool      `json:"cluster,omitempty"`
	Addrs    []string  `json:"addrs"`
	TLS      *security `json:"tls,omitempty"`

	SentinelUser     string `json:"sentinel_user,omitempty"`
	SentinelPassword string `json:"sentinel_pass,omitempty"`
}

// security is the TLS settings, with certificates in PEM.
type security struct {
	CA         string `json:"ca,omitempty"` // empty = the certificate authorities of the system
	Cert       string `json:"cert,omitempty"`
	Key        string `json:"key,omitempty"`
	ServerName string `json:"server_name,omitempty"` // name in the certificates; empty = the host of the address
}

// message is a line that the program writes: its greeting, a reply or an event.
type message struct {
	Hello    *string  `json:"hello"`
	Protocol int      `json:"protocol"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Claims   []string `json:"claims"`
	On       []string `json:"topologies"`
	Keys     string   `json:"keys"`
	Lingers  float64  `json:"lingers_ms"`
	Least    float64  `json:"least_ms"`
	Permits  int      `json:"permits"`

	ID    *uint64 `json:"id"`
	OK    bool    `json:"ok"`
	Busy  bool    `json:"busy"`
	Lost  bool    `json:"lost"`
	Error *string `json:"error"`

	Unsupported bool `json:"unsupported"`

	Token string   `json:"token"`
	Fence int64    `json:"fence"`
	Valid *float64 `json:"valid_ms"`
	Tried float64  `json:"tried_ms"`
	Count int64    `json:"count"`

	Event string `json:"event"`
	Hold  uint64 `json:"hold"`
}

// errNoise says that a line is no message: a library may have printed it.
var errNoise = errors.New("no JSON object")

func read(line []byte) (m message, err error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return m, errNoise
	}
	if m.plain(line[1:]) {
		return m, nil
	}
	m = message{}
	err = json.Unmarshal(line, &m)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is && meant(line) {
		return m, fmt.Errorf("%q is a %s, and must be %s", wrong.Field, wrong.Value, fits[wrong.Type.Kind()])
	}
	if err != nil {
		return m, errNoise
	}
	return m, nil
}

// fits describes what the fields of a message must be.
var fits = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.String: "a text", reflect.Slice: "a list of texts",
	reflect.Int: "a whole number", reflect.Int64: "a whole number below 2^63",
	reflect.Uint64:  "a whole number, 0 or more",
	reflect.Float64: "a number",
}

// meant is called for a line in which a field has the wrong type. It reports whether the line has the field id, event
// or hello. Every message has one of these, so any other line was printed by a library.
func meant(line []byte) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(line, &fields) // the error is ignored: a line that is no object has no fields
	return fields["id"] != nil || fields["event"] != nil || fields["hello"] != nil
}

// plain is a fast parser for a reply in the usual form, without its first brace. In that form the values are whole
// numbers, true, and texts without escapes. plain returns false for any other reply. It makes the calls of fast
// libraries 10 % faster (BenchmarkDrivers).
func (m *message) plain(rest []byte) bool {
	for {
		name, value, found := bytes.Cut(rest, []byte(`":`))
		value = bytes.TrimPrefix(value, []byte(" "))
		end := bytes.IndexAny(value, ",}")
		if !found || end < 0 || !m.field(name, value[:end]) {
			return false
		}
		if rest = value[end+1:]; value[end] == '}' {
			return len(rest) == 0
		}
		rest = bytes.TrimPrefix(rest, []byte(" "))
	}
}

// field sets a field of a reply for the method plain. The name still has its first quote, but not its last. It
// returns false if the value does not have the usual form.
func (m *message) field(name, value []byte) bool {
	yes := string(value) == "true"
	switch string(name) {
	case `"id`:
		id, err := strconv.ParseUint(string(value), 10, 64)
		m.ID = &id
		return err == nil && value[0] != '0'
	case `"ok`:
		m.OK = yes
		return yes
	case `"busy`:
		m.Busy = yes
		return yes
	case `"lost`:
		m.Lost = yes
		return yes
	case `"token`:
		text, first := bytes.CutPrefix(value, []byte(`"`))
		text, last := bytes.CutSuffix(text, []byte(`"`))
		m.Token = string(text)
		return first && last && plain(m.Token)
	}
	return string(name) == `"tried_ms` && string(value) == "0"
}

// Claims about the program, not about its lock. certainBusy has no effect, because it is the
// default. Older drivers send it.
const (
	doubtfulBusy = "busy_may_lie"
	certainBusy  = "busy_is_certain"
)

// Modes in which a readers-writer lock is acquired.
const (
	reading = "read"
	writing = "write"
)

// traits lists the properties, other than claims, that a program can state about its lock.
var traits = []struct {
	name, says string
	flag       func(*locks.Spec) *bool
}{
	{"session", "a hold ends with the program's connection to the servers, or with the program, and has no " +
		"other end: as flock, an advisory lock, an ephemeral node. A crash is one of the whole program",
		func(s *locks.Spec) *bool { return &s.Session }},
	{"outlives", "what a worker holds lives on when the worker alone has died, as a mutex of the program that " +
		"others wait for: a crash is one of the whole program. `renews` says so, too",
		func(s *locks.Spec) *bool { return &s.Outlives }},
	{"waits", "it heeds `wait_ms`. Without this claim the suite makes the further tries",
		func(s *locks.Spec) *bool { return &s.Waits }},
	{"defaults", "no promise either: the library can name no `user` and no `db`, so its servers have the default " +
		"user and database 0", func(s *locks.Spec) *bool { return &s.Defaults }},
	{"listens", "its waiters subscribe to channels of the servers", func(s *locks.Spec) *bool { return &s.Listens }},
}

// Claims lists what a program can claim, as pairs of a name and a description: the claims of a lock, the traits, and
// a claim about busy replies.
func Claims() (all [][2]string) {
	for _, c := range history.AllClaims {
		if c.Driver != "" {
			all = append(all, [2]string{c.Name, c.Driver})
		}
	}
	for _, t := range traits {
		all = append(all, [2]string{t.name, t.says})
	}
	return append(all, [2]string{doubtfulBusy,
		"no promise, an exception: `busy` is also said when something else went wrong, so that it says nothing " +
			"for certain. Without it `busy` means that the call had no effect"})
}

// names is the pattern of valid names of drivers. A driver's name becomes a part of file names.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// spec returns the lock as the greeting describes it. The error lists everything that is wrong with it.
func (m *message) spec(args, env []string) (locks.Spec, error) {
	if m.Hello == nil || *m.Hello != greeting {
		return locks.Spec{}, fmt.Errorf(`its first message is no greeting: it must be {"hello":%q,"protocol":%d,...}`,
			greeting, Protocol)
	}
	if m.Protocol != Protocol {
		return locks.Spec{}, fmt.Errorf("it speaks protocol %d, this suite speaks protocol %d", m.Protocol, Protocol)
	}
	var wrong []string
	for what, name := range map[string]string{"name": m.Name, "version": m.Version} {
		if !names.MatchString(name) {
			wrong = append(wrong, fmt.Sprintf("%s %q: letters, digits, . _ + and -, at most 64", what, name))
		}
	}
	p := &locks.Program{Args: args, Env: env, Version: m.Version, Keys: m.Keys, On: m.On}
	s := locks.Spec{
		Name: "exec:" + m.Name + "@" + m.Version, Doc: "a program of its own: " + strings.Join(args, " "),
		Source: args[0],
		Sites:  locks.OneSite, Program: p,
	}
	wrong = append(wrong, m.claim(&s)...)
	for i, ms := range []float64{m.Lingers, m.Least} {
		if !(ms >= 0 && ms <= float64(maxValid/time.Millisecond)) {
			wrong = append(wrong, fmt.Sprintf("%s_ms %g: a duration in milliseconds, "+
				"0 or more and at most a year", []string{"lingers", "least"}[i], ms))
		}
	}
	if p.Least = time.Duration(m.Least * float64(time.Millisecond)); m.Lingers > 0 {
		s.Linger = func(time.Duration) time.Duration { return time.Duration(m.Lingers * float64(time.Millisecond)) }
	}
	p.Keys = cmp.Or(p.Keys, locks.KeyPattern)
	if !strings.Contains(p.Keys, locks.KeyPattern) {
		wrong = append(wrong, fmt.Sprintf("keys %q: it must contain %s", p.Keys, locks.KeyPattern))
	}
	if len(p.On) == 0 {
		p.On = []string{topologies.All[0].Name}
	}
	wrong = append(wrong, strange("topology", p.On, topologies.Names())...)
	for _, name := range p.On {
		if t, ok := topologies.Find(name); ok && t.Sites > 1 {
			s.Sites = locks.ManySites
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return s, fmt.Errorf("its greeting is wrong: %s", strings.Join(wrong, "; "))
	}
	return s, nil
}

// claim sets the claims of the lock. It returns what is wrong with them.
func (m *message) claim(s *locks.Spec) (wrong []string) {
	var good []string
	for _, c := range Claims() {
		good = append(good, c[0])
	}
	for _, c := range history.AllClaims {
		if c.Driver != "" {
			*c.Flag(&s.Claims) = slices.Contains(m.Claims, c.Name)
		}
	}
	for _, t := range traits {
		*t.flag(s) = slices.Contains(m.Claims, t.name)
	}
	s.Outlives = s.Outlives || s.Claims.Renews || s.Session
	s.Claims.Permits, s.Program.Certain = m.Permits, !slices.Contains(m.Claims, doubtfulBusy)
	claims := slices.DeleteFunc(slices.Clone(m.Claims), func(name string) bool { return name == certainBusy })
	wrong = strange("claim", claims, good)
	c := &s.Claims
	if len(m.Claims) == 0 {
		wrong = append(wrong, "claims: it has none, so nothing could be judged; there is "+strings.Join(good, ", "))
	}
	for text, is := range map[string]bool{
		"claim crosses without sets: it is about locks of several keys":           c.Crosses && !c.Sets,
		"claim upgrades without readers: it is about readers who become writers":  c.Upgrades && !c.Readers,
		"claim writers without readers: it is about writers who wait for readers": c.Writers && !c.Readers,
		fmt.Sprintf("permits %d: a number, 1 or more", m.Permits):                 m.Permits < 0,
		"permits of a lock that readers share: it is one or the other":            m.Permits > 0 && c.Readers,
		"claim sets of a lock with readers or permits: there is no such acquire": c.Sets &&
			(c.Readers || m.Permits > 0),
	} {
		if is {
			wrong = append(wrong, text)
		}
	}
	return wrong
}

func strange(what string, list, good []string) (wrong []string) {
	for _, name := range list {
		if !slices.Contains(good, name) {
			wrong = append(wrong, fmt.Sprintf("%s %q: there is %s", what, name, strings.Join(good, ", ")))
		}
	}
	return wrong
}

// maxValid is the longest duration that a program may report, such as the validity of a lease.
const maxValid = 365 * 24 * time.Hour

// mistake says what is wrong with a reply; empty if nothing is.
func (m *message) mistake(op string) string {
	said := 0
	for _, is := range []bool{m.OK, m.Busy, m.Lost, m.Unsupported, m.Error != nil && !m.Lost} {
		if is {
			said++
		}
	}
	switch {
	case said != 1:
		return `an answer says one of "ok":true, "busy":true, "lost":true, "unsupported":true and "error":"..."`
	case m.Busy && op != opAcquire && op != opUpgrade:
		return fmt.Sprintf(`"busy" is an answer to acquire and upgrade, not to %s`, op)
	case m.Lost && op != opExtend && op != opRelease && op != opReenter && op != opUpgrade:
		return fmt.Sprintf(`"lost" is an answer to extend, release, reenter and upgrade, not to %s`, op)
	case m.Unsupported && op != opExtend:
		return fmt.Sprintf(`"unsupported" is an answer to extend, not to %s`, op)
	case m.Valid != nil && (math.IsNaN(*m.Valid) || *m.Valid < 0 || *m.Valid > float64(maxValid/time.Millisecond)):
		return fmt.Sprintf("valid_ms %g: a duration from the beginning of the call, in milliseconds, "+
			"0 or more and at most a year", *m.Valid)
	}
	return ""
}

// The values of request.Op.
const (
	opOpen    = "open"
	opAcquire = "acquire"
	opReenter = "reenter"
	opUpgrade = "upgrade"
	opExtend  = "extend"
	opRelease = "release"
	opCancel  = "cancel"
	opPing    = "ping"
	opClose   = "close"
)
