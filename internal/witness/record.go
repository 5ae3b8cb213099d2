package witness

import (
	"iter"
	"slices"
)

// fewRequests is how many requests are looked at for the shape of a hash.
const fewRequests = 64

// shape finds out what kind of a lock a number or a hash is. A number that gets an end in the same change is a lock,
// and no counter. The kind of a hash is shown by the requests that may have caused its first change. Its fields are
// tokens, as those of Redisson, if a request names a field. Or the hash is a record of its owner, with constant fields
// such as owner, host and since. Then the token is the value that HSETNX has set, since only that keeps others out, or
// else the first argument of the request that is a value.
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

// find finds the field with the token. At first that is the one at the index token; -1 = none.
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
