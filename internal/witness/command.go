package witness

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/wire"
)

// intent is the aim of a command with a key, as far as its words say that.
type intent uint8

// The intents.
const (
	reads   intent = iota
	tries          // writes the key only if it is not there
	sets           // writes it in any case
	swaps          // writes it in any case, and is told the old value
	extends        // changes its end
	renews         // writes it only if it is there
	frees          // deletes it
	runs           // a script: its aim shows in its effects
	enters         // adds to a collection, or counts in it
	leaves         // takes out of a collection
)

// form is the intent of a command, and where its arguments say more.
type form struct {
	intent     intent
	token, end int           // the places of the token and of the end of the lease; 0 = it has none
	unit       time.Duration // of the end
	absolute   bool          // the end is a time of the server's clock
}

// forms are those of commands whose names say it. SET says it by its options.
var forms = map[string]form{
	"SETNX": {intent: tries, token: 2}, "SET": {intent: sets, token: 2}, "GETSET": {intent: swaps, token: 2},
	"SETEX":  {sets, 3, 2, time.Second, false},
	"PSETEX": {sets, 3, 2, time.Millisecond, false}, "EXPIRE": {extends, 0, 2, time.Second, false},
	"PEXPIRE":  {extends, 0, 2, time.Millisecond, false},
	"EXPIREAT": {extends, 0, 2, time.Second, true}, "PEXPIREAT": {extends, 0, 2, time.Millisecond, true},
	"PERSIST": {intent: extends}, "GETEX": {intent: extends},
	"DEL": {intent: frees}, "UNLINK": {intent: frees}, "GETDEL": {intent: frees}, "EVAL": {intent: runs},
	"EVALSHA": {intent: runs}, "FCALL": {intent: runs},
	"HSET": {intent: enters}, "HMSET": {intent: enters}, "HSETNX": {intent: enters}, "HINCRBY": {intent: enters},
	"SADD": {intent: enters},
	"ZADD": {intent: enters}, "ZINCRBY": {intent: enters}, "HDEL": {intent: leaves}, "SREM": {intent: leaves},
	"ZREM":             {intent: leaves},
	"ZREMRANGEBYSCORE": {intent: leaves}, "ZREMRANGEBYRANK": {intent: leaves}, "ZPOPMIN": {intent: leaves},
	"SPOP": {intent: leaves},
}

// setOptions are options of SET that say when the key ends.
var setOptions = map[string]form{
	"EX": {unit: time.Second}, "PX": {unit: time.Millisecond}, "EXAT": {unit: time.Second, absolute: true},
	"PXAT": {unit: time.Millisecond, absolute: true},
}

// words is a command as it is understood of one key.
type words struct {
	intent intent
	token  string        // the value that it writes; empty if the words do not say it
	ttl    time.Duration // the lease it asks for; 0 = none, or its words do not say it
	until  int64         // the server's milliseconds at which the key ends; 0 = its words do not say it
	script string        // the digest of a script
	args   []string      // possible tokens: all but names, numbers of keys and keys
}

// keysOf lists the keys of a command, as far as locks and data use it.
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

// understand reads a command.
func understand(args []string) (w words) {
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
	if f.end > 0 && f.end < len(args) {
		w.ends(args[f.end], f)
	}
	if args[0] == "SET" {
		w.options(args[min(3, len(args)):])
	}
	return w
}

// ends reads the end of the lease that a command asks for.
func (w *words) ends(text string, f form) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch ms := int64(f.unit / time.Millisecond); {
	case err != nil || n < 0 || n > (1<<62)/int64(f.unit) && !f.absolute:
	case f.absolute:
		w.until = n * ms
	default:
		w.ttl = time.Duration(n) * f.unit
	}
}

// digest is the name of a script in EVALSHA.
func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// scriptText is the text of a script that a command brings; empty if it brings none, or one too long to be kept.
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

// options reads the options of a SET.
func (w *words) options(args []string) {
	for i, a := range args {
		name := strings.ToUpper(a)
		switch f, ends := setOptions[name]; {
		case name == "NX":
			w.intent = tries
		case name == "XX":
			w.intent = renews
		case ends && i+1 < len(args):
			w.ends(args[i+1], f)
		}
	}
}

// says is the effect of a command, as its reply says.
type says uint8

const (
	nothing says = iota // it was not seen, or can mean either
	did
	didNot
)

// answered reads the reply to a command. That of a script says only that it may have had an effect, or may not.
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
	switch w.intent {
	case tries, sets, renews:
		if q.Args[0] == "SET" && slices.ContainsFunc(q.Args[3:],
			func(a string) bool { return strings.EqualFold(a, "GET") }) {
			return nothing // it answers the old value
		}
	case swaps, enters:
		return nothing
	case runs:
		if truth == did && r.Kind == wire.Integer && r.Int > 1 {
			return nothing // a time that is left, or a count
		}
	}
	return truth
}

// hasToken tells whether a command names a token.
func (w *words) hasToken(token string) bool { return slices.Contains(w.args, token) }
