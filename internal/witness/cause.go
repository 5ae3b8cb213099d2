package witness

import (
	"slices"
	"strings"
)

// cause returns the request that most likely caused a change; nil if none can have caused it. A script that usually
// has other effects than this change is only taken if no other request is possible.
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

// unlike tells whether a request is a script that usually has other effects than this change. It goes by the effects
// of the script so far, or by its text.
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

// overdue drops the first request in l.certain, whose reply shows an effect, if a request that was called after that
// reply can have caused this change. The effect of the first request must have come before this change, so it was
// attributed to another request. overdue returns true if it dropped the request.
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

// earlier looks for a call of the same script on the same connection that was answered before e was called. Such a
// call may also have left a level of the reentrant lock. It returns the first such call, or e if it finds no other.
// Inner levels are left first, and the reply to that is often 0, as if nothing had been done.
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

// passOver drops the request that caused an INCR while the number was not known to be a lock. Otherwise that request
// could be taken for the cause of a later grant.
func (l *ledger) passOver(c *change) {
	for e := range l.heard.all() {
		if e.number && e.says == did && e.Call <= c.at {
			l.drop(e)
			return
		}
	}
}
