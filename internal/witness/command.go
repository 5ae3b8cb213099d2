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

// intent is what a command wants of a key, as far as its words say that.
type intent uint8

// The intents.
const (
	reads   intent = iota
	tries          // writes the key only if it is not there
	sets           // writes it in any case
	swaps          // writes it in any case, and is told what was there
	extends        // changes its end
	renews         // writes it only if it is there
	frees          // deletes it
	runs           // a script: what it wants shows in its effects
	enters         // adds to a collection, or counts in it
	leaves         // takes out of a collection
)

// intents are those of commands whose names say it. SET says it by its options.
var intents = map[string]intent{
	"SETNX": tries, "SETEX": sets, "PSETEX": sets, "SET": sets, "GETSET": swaps, "GETEX": extends,
	"EXPIRE": extends, "PEXPIRE": extends, "EXPIREAT": extends, "PEXPIREAT": extends, "PERSIST": extends,
	"DEL": frees, "UNLINK": frees, "GETDEL": frees, "EVAL": runs, "EVALSHA": runs, "FCALL": runs,
	"HSET": enters, "HMSET": enters, "HSETNX": enters, "HINCRBY": enters, "SADD": enters, "ZADD": enters, "ZINCRBY": enters,
	"HDEL": leaves, "SREM": leaves, "ZREM": leaves, "ZREMRANGEBYSCORE": leaves, "ZREMRANGEBYRANK": leaves, "ZPOPMIN": leaves, "SPOP": leaves,
}

// words is a command as it is understood of one key.
type words struct {
	intent intent
	token  string        // what it writes; empty if the words do not say it
	ttl    time.Duration // the lease it asks for; 0 = none, or its words do not say it
	until  int64         // the server's milliseconds at which the key ends; 0 = its words do not say it
	script string        // what names the script: its digest
	args   []string      // what may be a token: all but names, numbers of keys and keys
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
	case "PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "AUTH", "HELLO", "CONFIG", "CLIENT", "SCRIPT", "SELECT", "PING", "ECHO", "INFO", "COMMAND":
		return nil
	}
	return args[1:2]
}

// understand reads a command.
func understand(args []string) (w words) {
	w.intent = intents[args[0]]
	switch {
	case w.intent == runs:
		w.script = args[1]
		if args[0] == "EVAL" && !strings.HasPrefix(args[1], "sha1:") {
			w.script = digest(args[1])
		} else if parts := strings.Split(args[1], ":"); args[0] == "EVAL" && len(parts) == 3 {
			w.script = parts[1]
		}
		w.args = args[min(3+len(keysOf(args)), len(args)):]
	case w.intent == reads || len(args) < 3:
	case args[0] == "SET":
		w.token, w.args = args[2], args[2:3]
		w.options(args[3:])
	case args[0] == "SETEX" && len(args) == 4:
		w.token, w.args, w.ttl = args[3], args[3:], number(args[2], time.Second)
	case args[0] == "PSETEX" && len(args) == 4:
		w.token, w.args, w.ttl = args[3], args[3:], number(args[2], time.Millisecond)
	case args[0] == "SETNX", args[0] == "GETSET":
		w.token, w.args = args[2], args[2:]
	case args[0] == "EXPIRE":
		w.ttl = number(args[2], time.Second)
	case args[0] == "PEXPIRE":
		w.ttl = number(args[2], time.Millisecond)
	case args[0] == "EXPIREAT", args[0] == "PEXPIREAT":
		w.until = moment(args[2], args[0] == "EXPIREAT")
	case w.intent == enters || w.intent == leaves:
		w.args = args[2:]
	}
	return w
}

// digest is what EVALSHA calls a script.
func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// scriptText is the text of a script that a command brings; empty if it brings none, or one too long to be kept.
func scriptText(args []string) string {
	switch {
	case args[0] == "EVAL" && len(args) > 1 && !strings.HasPrefix(args[1], "sha1:"):
		return args[1]
	case args[0] == "SCRIPT" && len(args) > 2 && strings.EqualFold(args[1], "LOAD") && !strings.HasPrefix(args[2], "sha1:"):
		return args[2]
	}
	return ""
}

// options reads what follows the value of a SET.
func (w *words) options(args []string) {
	for i, a := range args {
		value := ""
		if i+1 < len(args) {
			value = args[i+1]
		}
		switch strings.ToUpper(a) {
		case "NX":
			w.intent = tries
		case "XX":
			w.intent = renews
		case "EX":
			w.ttl = number(value, time.Second)
		case "PX":
			w.ttl = number(value, time.Millisecond)
		case "EXAT", "PXAT":
			w.until = moment(value, a[0]|0x20 == 'e')
		}
	}
}

// moment is a time of a server's clock, in milliseconds.
func moment(text string, seconds bool) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	if seconds {
		n *= 1000
	}
	return n
}

func number(text string, unit time.Duration) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(1<<62)/int64(unit) {
		return 0
	}
	return time.Duration(n) * unit
}

// says is what a reply says of a command's effect.
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
	case r.Kind == wire.Nil, r.Kind == wire.Integer && r.Int <= 0, r.Kind == wire.Bool && r.Int == 0, r.Kind == wire.Simple && r.Text == "QUEUED":
		truth = didNot
	}
	switch w.intent {
	case tries, sets, renews:
		if q.Args[0] == "SET" && slices.ContainsFunc(q.Args[3:], func(a string) bool { return strings.EqualFold(a, "GET") }) {
			return nothing // it answers what was there
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
