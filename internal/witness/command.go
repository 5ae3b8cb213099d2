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

// intent is what a command intends to do with a key, as far as its words show.
type intent uint8

// The intents.
const (
	reads   intent = iota
	tries          // write the key if it does not exist
	sets           // write the key in any case
	swaps          // write the key in any case, and return the old value
	extends        // changes its end
	renews         // write the key if it exists
	frees          // deletes it
	runs           // run a script, whose effects show what it intends
	enters         // add to a collection, or count in it
	leaves         // remove from a collection
)

// form is the intent of a command, with the positions of its arguments.
type form struct {
	intent     intent
	token, end int           // positions of the token and of the end of the lease; 0 = there is none
	unit       time.Duration // of the end
	absolute   bool          // the end is a time on the server's clock
}

// forms maps command names to their forms. For SET the options matter as well.
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

// setOptions maps the options of SET that say when the key expires.
var setOptions = map[string]form{
	"EX": {unit: time.Second}, "PX": {unit: time.Millisecond}, "EXAT": {unit: time.Second, absolute: true},
	"PXAT": {unit: time.Millisecond, absolute: true},
}

// words is what a command says about one key.
type words struct {
	intent intent
	token  string        // value that it writes; empty if it does not show
	ttl    time.Duration // lease that it requests; 0 = none, or it does not show
	until  int64         // server time in ms at which the key expires; 0 = it does not show
	script string        // the digest of a script
	args   []string      // arguments that may be tokens: all but names, numbers of keys and keys
}

// keysOf lists the keys of a command, for the commands that locks and counters use.
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

// understand parses a command.
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

// ends parses the end of the lease that a command requests.
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

// scriptText is the text of a script in a command; empty if there is none, or if it was too long to be kept.
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

// options parses the options of SET.
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

// says is what a reply says about the effect of its command.
type says uint8

const (
	nothing says = iota // there was no reply, or it may mean either
	did
	didNot
)

// answered interprets the reply to a command. A script's reply does not show whether it had an effect.
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
			return nothing // the reply is the old value
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

// hasToken tells whether a command names a token.
func (w *words) hasToken(token string) bool { return slices.Contains(w.args, token) }
