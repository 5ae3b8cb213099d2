package witness

import (
	"iter"
	"slices"
)

// fewRequests is the number of requests in which the method find looks for the fields and values of a hash.
const fewRequests = 64

// shape finds out how a number or a hash is used. A number that gets an expiry in the same change is a lock, not
// a counter. The use of a hash follows from the requests that may have caused its first change. If one of them
// has a field of the hash as an argument, the fields are tokens, as with Redisson. Otherwise the hash is a
// record of its owner, with constant fields such as owner, host and since. Its token is then the value that
// HSETNX has set, because only HSETNX keeps others out. Without HSETNX, the token is the first argument of a
// request that is a value in the hash.
func (l *ledger) shape(c *change) {
	named := func(name string) bool {
		return slices.ContainsFunc(c.commands, func(args []string) bool { return args[0] == name })
	}
	l.state.number = l.state.number || named("INCR") && named("PEXPIREAT")
	if l.shaped {
		return
	}
	fields, values, alone := pairs(c)
	if len(fields) > 0 {
		l.find(fields, values, alone)
	}
}

// pairs returns the fields and the values that a change writes into a hash. alone is the index of a field that HSETNX
// has set; -1 = none.
func pairs(c *change) (fields, values []string, alone int) {
	alone = -1
	for _, args := range c.commands {
		switch args[0] {
		case "HSET", "HMSET", "HSETNX", "HINCRBY":
			for i := 2; i+1 < len(args); i += 2 {
				if fields, values = append(fields, args[i]), append(values, args[i+1]); args[0] == "HSETNX" {
					alone = len(fields) - 1
				}
			}
		}
	}
	return fields, values, alone
}

// find finds out which field has the token. token is the index of the field that HSETNX has set; -1 = none, so the
// requests must show the field.
func (l *ledger) find(fields, values []string, token int) {
	for _, list := range []iter.Seq[*entry]{l.heard.all(), l.waiting.all(), l.lost.all()} {
		n := 0
		for e := range list {
			if n++; n > fewRequests {
				break
			}
			if e.intent != runs {
				continue
			}
			if slices.ContainsFunc(fields, e.hasToken) {
				l.shaped = true
				return
			}
			for i := 0; i < len(e.args) && token < 0; i++ {
				token = slices.Index(values, e.args[i])
			}
		}
	}
	if token >= 0 {
		l.shaped, l.state.field = true, fields[token]
	}
}
