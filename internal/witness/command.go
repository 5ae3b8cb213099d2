package witness

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/wire"
)

// intent is the purpose of a command for a key, as far as its words show.
type intent uint8

const (
	reads   intent = iota
	tries          // writes the key if it does not exist
	sets           // writes the key in any case
	swaps          // writes the key in any case, and returns the old value
	extends        // changes the expiry of the key
	renews         // writes the key if it exists
	frees          // deletes the key
	runs           // runs a script, whose effects show its purpose
	enters         // adds to a collection, or counts in it
	leaves         // removes from a collection
)

// form is the intent of a command, with the positions of its arguments.
type form struct {
	intent     intent
	token, end int           // positions of the token and of the lease's end; 0 = the command has none
	unit       time.Duration // unit of the end
	absolute   bool          // the end is a time on the server's clock, not a duration
}

// forms maps command names to their forms. The options of SET can change its form.
var forms = map[string]form{
	"SETNX": {intent: tries, token: 2}, "SET": {intent: sets, token: 2}, "GETSET": {intent: swaps, token: 2},
	"SETEX":  {sets, 3, 2, time.Second, false},
	"PSETEX": {sets, 3, 2, time.Millisecond, false}, "EXPIRE": {extends, 0, 2, time.Second, false},
	"PEXPIRE":  {extends, 0, 2, time.Millisecond, false},
	"EXPIREAT": {extends, 0, 2, time.Second, true}, "PEXPIREAT": {extends, 0, 2, time.Millisecond, true},
	"PERSIST": {intent: extends}, "GETEX": {intent: extends},
	"DEL": {intent: frees}, "UNLINK": {intent: frees}, "GETDEL": {intent: frees}, "EVAL": {intent: runs},
	"EVALSHA": {intent: runs}, "FCALL": {intent: runs},
	"MSET": {intent: sets, token: 2}, "MSETNX": {intent: tries, token: 2},
	"INCR": {intent: tries}, "DECR": {intent: frees},
	"HSETNX": {intent: tries, token: 3}, // only a constant field keeps others out, so the value is the token
	"HSET":   {intent: enters}, "HMSET": {intent: enters}, "HINCRBY": {intent: enters}, "SADD": {intent: enters},
	"ZADD": {intent: enters}, "ZINCRBY": {intent: enters}, "HDEL": {intent: leaves}, "SREM": {intent: leaves},
	"ZREM":             {intent: leaves},
	"ZREMRANGEBYSCORE": {intent: leaves}, "ZREMRANGEBYRANK": {intent: leaves}, "ZPOPMIN": {intent: leaves},
	"SPOP": {intent: leaves},
}

// setOption returns the form of an option of SET that sets the expiry; false for the others.
func setOption(name string) (f form, ends bool) {
	switch name {
	case "EX":
		return form{unit: time.Second}, true
	case "PX":
		return form{unit: time.Millisecond}, true
	case "EXAT":
		return form{unit: time.Second, absolute: true}, true
	case "PXAT":
		return form{unit: time.Millisecond, absolute: true}, true
	}
	return form{}, false
}

// words are the facts that the text of a command shows about one key.
type words struct {
	intent intent
	token  string        // value that the command writes; empty if its text does not show that
	ttl    time.Duration // lease that the command requests; 0 = none, or its text does not show it
	until  int64         // server time in ms at which the key expires; 0 = its text does not show it
	script string        // digest of the script
	args   []string      // arguments that may be tokens: all but command names, key counts and keys
	number bool          // it adds one to a number, or takes one from it
}

// keysOf returns the keys of a command. It knows the commands that locks and counters use.
func keysOf(args []string) []string {
	if len(args) < 2 {
		return nil
	}
	switch args[0] {
	case "EVAL", "EVALSHA", "FCALL", "EVAL_RO", "EVALSHA_RO", "FCALL_RO":
		if len(args) < 3 {
			return nil
		}
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 0 || n > len(args)-3 {
			return nil
		}
		return args[3 : 3+n]
	case "DEL", "UNLINK", "EXISTS", "MGET", "WATCH", "TOUCH":
		return args[1:]
	case "MSET", "MSETNX":
		var keys []string
		for i := 1; i < len(args); i += 2 {
			keys = append(keys, args[i])
		}
		return keys
	case "PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "AUTH", "HELLO", "CONFIG", "CLIENT", "SCRIPT", "SELECT",
		"PING", "ECHO", "INFO", "COMMAND":
		return nil
	}
	return args[1:2]
}

// counted is the token of a lock that is a number: the client that raises the number to 1 is granted the lock.
const counted = "1"

// forKey returns the part of a command that concerns one of its keys. It returns INCRBY 1 as
// INCR, and DECRBY 1 as DECR.
func forKey(args []string, key string) []string {
	one := ""
	switch args[0] {
	case "INCRBY", "DECRBY":
		if len(args) == 3 && args[2] == "1" {
			return []string{strings.TrimSuffix(args[0], "BY"), key}
		}
	case "MSET":
		one = "SET"
	case "MSETNX":
		one = "SETNX"
	}
	for i := 1; one != "" && i+1 < len(args); i += 2 {
		if args[i] == key {
			return []string{one, key, args[i+1]}
		}
	}
	return args
}

func understand(args []string) (w words) {
	if len(args) == 3 {
		args = forKey(args, args[1])
	}
	f := forms[args[0]]
	w.intent = f.intent
	switch {
	case w.intent == runs:
		w.script = args[1]
		if args[0] == "EVAL" && !strings.HasPrefix(args[1], "sha1:") {
			w.script = digest(args[1])
		} else if parts := strings.Split(args[1], ":"); args[0] == "EVAL" && len(parts) == 3 {
			w.script = parts[1]
		}
		w.args = args[min(3+len(keysOf(args)), len(args)):]
	case len(args) <= max(f.token, f.end, 2):
	case w.intent == enters || w.intent == leaves:
		w.args = args[2:]
	case f.token > 0:
		w.token, w.args = args[f.token], args[f.token:f.token+1]
	}
	switch args[0] {
	case "INCR":
		w.number, w.token, w.args = true, counted, []string{counted}
	case "DECR":
		w.number = true
	case "MSET", "MSETNX":
		w.args = nil
		for i := 2; i < len(args); i += 2 {
			w.args = append(w.args, args[i])
		}
	}
	if f.end > 0 && f.end < len(args) {
		w.ends(args[f.end], f)
		if w.intent == extends && w.ttl == 0 && w.until == 0 {
			w.intent = frees // an expiry in the past deletes the key
		}
	}
	if args[0] == "SET" {
		w.options(args[min(3, len(args)):])
	}
	return w
}

// ends parses the argument that sets the end of the lease.
func (w *words) ends(text string, f form) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch ms := int64(f.unit / time.Millisecond); {
	case err != nil || n <= 0 || n > (1<<62)/int64(f.unit) && !f.absolute:
	case f.absolute:
		w.until = n * ms
	default:
		w.ttl = time.Duration(n) * f.unit
	}
}

// digest returns the SHA-1 by which EVALSHA names a script.
func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// scriptText returns the text of the script in a command; empty if there is none, or if the text was too long to be
// kept.
func scriptText(args []string) string {
	switch {
	case args[0] == "EVAL" && len(args) > 1 && !strings.HasPrefix(args[1], "sha1:"):
		return args[1]
	case args[0] == "SCRIPT" && len(args) > 2 && strings.EqualFold(args[1], "LOAD") &&
		!strings.HasPrefix(args[2], "sha1:"):
		return args[2]
	}
	return ""
}

func (w *words) options(args []string) {
	for i, a := range args {
		name := strings.ToUpper(a)
		switch f, ends := setOption(name); {
		case name == "NX":
			w.intent = tries
		case name == "XX":
			w.intent = renews
		case ends && i+1 < len(args):
			w.ends(args[i+1], f)
		}
	}
}

// says tells what a reply shows about its command.
type says uint8

const (
	nothing says = iota // there was no reply, or the reply is ambiguous
	did
	didNot
)

// answered interprets the reply to a command. Some replies of scripts are ambiguous.
func (w *words) answered(q *wire.Request) says {
	r := &q.Reply
	truth := did
	switch {
	case r.Kind == wire.Unseen:
		return nothing
	case r.Kind == wire.Error, r.Kind == wire.NotExecuted:
		return didNot
	case r.Kind == wire.Nil, r.Kind == wire.Integer && r.Int <= 0, r.Kind == wire.Bool && r.Int == 0,
		r.Kind == wire.Simple && r.Text == "QUEUED":
		truth = didNot
	}
	switch {
	case w.number && w.intent == tries && r.Int > 1:
		return didNot
	case w.number && w.intent == frees:
		if r.Int > 0 {
			return nothing // other clients have tried since the grant
		}
		return did
	}
	switch w.intent {
	case tries, sets, renews:
		get := func(a string) bool { return strings.EqualFold(a, "GET") }
		switch old := q.Args[0] == "SET" && slices.ContainsFunc(q.Args[3:], get); {
		case old && w.intent != tries:
			return nothing
		case old: // the reply is the old value: nil = the key was written
			truth = did + didNot - truth
		}
	case swaps, enters:
		return nothing
	case runs:
		if truth == did && r.Kind == wire.Integer && r.Int > 1 {
			return nothing // the reply is a TTL, or a count
		}
	}
	return truth
}

// timeLeft matches a script that returns nil if it has granted the lock, and otherwise the remaining TTL
// of another client's lock.
var timeLeft = regexp.MustCompile(`return[ (]+redis\.p?call\( *['"]pttl`)

// is sets the text of a script.
func (s *script) is(text string) {
	if s.text == "" {
		s.text = strings.ToLower(text)
		s.tellsTime = timeLeft.MatchString(s.text)
	}
}

// answered interprets the reply to a script by its text. If the text does not help, it returns by, the
// interpretation without the text.
func (s *script) answered(q *wire.Request, by says) says {
	switch kind := q.Reply.Kind; {
	case kind == wire.Nil && s.tellsTime:
		return did
	case kind == wire.Integer && s.tellsTime:
		return didNot
	}
	return by
}

func (w *words) hasToken(token string) bool { return slices.Contains(w.args, token) }
