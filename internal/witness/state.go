package witness

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// state is the content of a lock key on one server: its owners and its expiry.
type state struct {
	owners  owners
	until   int64    // server time in ms; 0 = it does not expire
	wrote   []string // tokens that the last commands wrote
	scored  bool     // the key is a sorted set, and counts are scores
	counts  bool     // counts tell how often an owner has entered
	count   int64    // for a number: its value
	number  bool     // the number is a lock: it was given an expiry, lowered or deleted; a counter only grows
	field   string   // for a hash that is a record of its owner: the field with the token
	strange string   // the first command that was not understood; empty = none
}

// owners are sorted by token.
type owners []owner

type owner struct {
	token string // the value of a string, or a field, member or element
	count int64
}

// of returns the count of a token; false if it is missing.
func (o owners) of(token string) (count int64, has bool) {
	if i, has := o.find(token); has {
		return o[i].count, true
	}
	return 0, false
}

func (o owners) find(token string) (at int, has bool) {
	return slices.BinarySearchFunc(o, token, func(o owner, token string) int { return cmp.Compare(o.token, token) })
}

// partial tells whether a command may change only some owners of a key. Other commands replace all owners, or none.
func partial(name string) bool {
	switch name {
	case "HSET", "HMSET", "HSETNX", "HINCRBY", "HDEL", "SADD", "SREM", "SPOP", "ZADD", "ZREM", "ZREMRANGEBYSCORE",
		"LREM":
		return true
	}
	return false
}

func (s *state) held() bool { return len(s.owners) > 0 }

func (s *state) clone() state {
	c := *s
	c.owners, c.wrote = slices.Clone(s.owners), nil
	return c
}

func (s *state) write(token string, count int64) {
	i, has := s.owners.find(token)
	if !has {
		s.owners = slices.Insert(s.owners, i, owner{token: token})
	}
	s.owners[i].count = count
	s.wrote = append(s.wrote, token)
}

func (s *state) clear() { s.owners, s.until, s.scored, s.counts, s.count = nil, 0, false, false, 0 }

// execute applies a command of the replication stream. Few commands occur there, because servers rewrite most of them
// before replication.
func (s *state) execute(args []string) {
	w, rest := understand(args), args[min(2, len(args)):]
	switch args[0] {
	case "SET", "SETNX", "GETSET", "SETEX", "PSETEX":
		s.clear()
		if s.until = w.until; len(w.args) > 0 {
			s.write(w.token, 1)
		}
	case "DEL", "UNLINK", "GETDEL", "RENAME", "FLUSHALL", "FLUSHDB":
		s.number = s.number || s.count > 0
		s.clear()
	case "PEXPIREAT", "EXPIREAT":
		if s.number = s.number || s.count > 0; len(rest) > 0 && s.held() {
			s.until = w.until
		}
	case "PERSIST":
		s.until = 0
	case "HSET", "HMSET", "HSETNX", "HINCRBY", "HDEL":
		s.fields(args[0], rest)
	case "INCR", "DECR":
		s.counted(args[0])
	case "SADD":
		for _, m := range rest {
			s.write(m, 1)
		}
	case "ZADD":
		s.add(rest)
	case "SREM", "ZREM", "LREM", "SPOP":
		s.remove(rest)
	case "ZREMRANGEBYSCORE":
		if len(rest) > 1 {
			most, err := strconv.ParseFloat(strings.TrimPrefix(rest[1], "("), 64)
			s.owners = slices.DeleteFunc(s.owners, func(o owner) bool { return err == nil && float64(o.count) <= most })
		}
	default:
		s.strange = cmp.Or(s.strange, args[0])
	}
}

// counted applies a command on a number.
func (s *state) counted(name string) {
	switch {
	case s.count == 0 && (s.held() || name == "DECR"): // a number that SET has written, as for a semaphore
		s.strange = cmp.Or(s.strange, name)
	case name == "DECR":
		if s.count--; s.count == 0 {
			s.owners = nil
		}
		s.number = true
	default:
		if s.count++; s.count == 1 && s.number {
			s.write(counted, 1)
		}
	}
}

// fields applies a command on a hash.
func (s *state) fields(name string, rest []string) {
	switch {
	case name == "HDEL" && s.field == "":
		s.remove(rest)
	case name == "HDEL":
		if slices.Contains(rest, s.field) {
			s.owners, s.until = nil, 0
		}
	case s.field != "":
		for i := 0; i+1 < len(rest) && name != "HINCRBY"; i += 2 {
			if rest[i] != s.field {
				continue
			}
			if _, had := s.owners.of(rest[i+1]); !had {
				s.owners = nil
			}
			s.write(rest[i+1], 1)
		}
	case name == "HINCRBY":
		if len(rest) > 1 {
			n, _ := strconv.ParseInt(rest[1], 10, 64)
			before, _ := s.owners.of(rest[0])
			s.write(rest[0], before+n)
			s.counts = true
		}
	default:
		for i := 0; i+1 < len(rest); i += 2 {
			n, err := strconv.ParseInt(rest[i+1], 10, 64)
			if err != nil {
				n = 1
			}
			s.write(rest[i], n)
		}
	}
}

func (s *state) remove(tokens []string) {
	for _, m := range tokens {
		if i, has := s.owners.find(m); has {
			s.owners = slices.Delete(s.owners, i, i+1)
		}
	}
	if !s.held() {
		s.until = 0
	}
}

// add parses the members of a ZADD.
func (s *state) add(rest []string) {
	for len(rest) > 0 {
		if _, err := strconv.ParseFloat(rest[0], 64); err == nil {
			break
		}
		rest = rest[1:]
	}
	for i := 0; i+1 < len(rest); i += 2 {
		score, _ := strconv.ParseFloat(rest[i], 64)
		s.write(rest[i+1], int64(score))
	}
	s.scored = true
}
