package witness

import (
	"slices"
	"strings"
)

// cause returns the request that most likely caused a change, or nil. Effects come in the order of execution. A script
// that is unlike the change is taken last.
func (r *Reader) cause(l *ledger, c *change, d *diff) (e *entry) {
	may := func(e *entry) bool { return r.may(l, c, d, e) }
	if c.commands[0][0] == "INCR" && len(d.granted) == 0 {
		l.passOver(c)
	}
	defer func() {
		if e != nil && e.intent == runs && len(d.shallower) > 0 {
			e = l.earlier(e, d, may)
		}
	}()
	if e = l.first(d, func(e *entry) bool { return may(e) && !r.unlike(e, d) }); e != nil {
		return e
	}
	for e = l.first(d, may); e == nil && r.overdue(l, c, d); e = l.first(d, may) {
	}
	return e
}

// unlike tells whether a request is a script whose effects so far, or whose words, are of another kind than a change.
func (r *Reader) unlike(e *entry, d *diff) bool {
	k := r.scripts[e.script]
	if e.intent != runs || k == nil {
		return false
	}
	grants, extends, frees := k.grants, k.extends, k.frees
	if !grants && !extends && !frees {
		if k.text == "" {
			return false
		}
		grants, extends = k.says("set", "incr", "add"), k.says("expire")
		frees = k.says("del", "unlink", "rem", "pop", "decr")
	}
	switch {
	case len(d.granted)+len(d.deeper) > 0:
		return !grants
	case len(d.ended)+len(d.shallower) > 0:
		return !frees
	}
	return d.moved && !extends && !grants
}

// says tells whether the text of a script has one of some words.
func (s *script) says(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s.text, w) })
}

// overdue drops the first request that certainly had an effect, if this change is certainly the effect of a later one:
// then an earlier change was taken for another's.
func (r *Reader) overdue(l *ledger, c *change, d *diff) bool {
	other := l.certain.at(0)
	if other == nil || !l.affirms(d, func(e *entry) bool {
		return e.Call > other.Return && e.Call <= c.at && e.returned() >= l.least && e.fits(d)
	}) {
		return false
	}
	l.drop(other)
	r.effectless(l, other.sighting)
	return true
}

// earlier returns the first call of a script on a connection that may have left a level of a lock, if it was answered
// before another one was called. Inner levels come first, and their answer is often 0.
func (l *ledger) earlier(e *entry, d *diff, may func(*entry) bool) *entry {
	for o := range l.heard.all() {
		if o.returned() > e.Call {
			break
		}
		if o.Conn == e.Conn && o.intent == runs && o.script == e.script && o.names(d.shallower) && may(o) {
			return o
		}
	}
	return e
}

// passOver drops the request that added one to a number, which was not known to be a lock then: it is no cause of a
// later grant.
func (l *ledger) passOver(c *change) {
	for e := range l.heard.all() {
		if e.number && e.says == did && e.Call <= c.at {
			l.drop(e)
			return
		}
	}
}
