package explore

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// mostLines is the largest number of lines of a trace, without the verdict.
const mostLines = 39

// trace records the events of a schedule, for readers.
type trace struct {
	clock  *history.Clock
	lines  []*line
	tokens []string
	sites  int
	steps  []step // the events in order

	mu        sync.Mutex  // guards all fields while clients run
	exchanges []*exchange // in the order of the replies
}

// line is an event, or a conclusion of a client.
type line struct {
	at     time.Duration // position in the order of all events
	now    time.Duration // virtual time, which stands still while messages move
	client int           // -1 = none
	text   string        // a command, or a description
	reply  string
	says   []string // conclusions of the client from the reply
	refuse int      // number of refused tries

	star    bool          // the line is a deviation
	act     act           // for a deviation: its kind
	lasts   time.Duration // for a deviation: its duration
	site    int           // site of a message; -1 = the line is no message
	of      *line         // the command to whose reply the line belongs; the line itself = a published message
	heard   time.Duration // when the reply reached the client; 0 = never
	until   time.Duration // end of the client's lease; 0 = none
	entered int           // change of the client's number of holds: 1 by a grant, -1 by a release
}

func (t *trace) add(client int, star bool, text string) *line {
	l := &line{at: t.clock.Stamp(), now: t.clock.Now(), client: client, star: star, text: text, site: -1}
	t.lines = append(t.lines, l)
	return l
}

func (t *trace) deviation(s *schedule, o option) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, what, text, lasts := o.e, "its "+kinds[o.e.kind], "", time.Duration(0)
	if x := e.x; x != nil {
		what = t.sent(e.site, e.words)
		if e.kind == reply && !x.pushed {
			what = "the reply to " + what
		}
	}
	switch o.act {
	case pauses:
		text, lasts = fmt.Sprintf("is paused for %v, before %s", s.o.Pause, what), s.o.Pause
	case expires:
		text, lasts = "messages are slow, until the next key expires: before "+what, s.slowness()
	case loses:
		text = what + " is lost"
	case breaks:
		text = "connection breaks: no " + what
	case crashes:
		text = "crashes, before " + what
	case cancelsCall:
		text = "has its call called off, before " + what
	case refuses:
		text = what + " is answered an error: " + refusal
	case hangs:
		text, lasts = fmt.Sprintf("hangs for %v, before %s", s.hangsFor(), what), s.hangsFor()
	case forgets:
		text = "forgets all keys, before " + what
	case leaps:
		text = fmt.Sprintf("has its clock jump %v ahead, before %s",
			cmp.Or(s.o.Leap, firstExpiry(s.servers[e.site])), what)
	case dies:
		text = "never answers again, before " + what
	case letGo:
		if e.x != nil && e.x.pushed {
			l := t.add(e.client, false, "hears "+what)
			l.site, l.of = e.site, l
		}
		if n := len(s.taken); n == 0 || s.taken[n-1].At != len(s.options)-1 {
			return
		}
		text = "comes first, with " + what
	}
	client := e.client
	if o.act >= hangs {
		text, client = fmt.Sprintf("%s %s of w%02d", t.server(e.site), text, client), -1
	}
	l := t.add(client, true, text)
	if l.act, l.lasts = o.act, lasts; e.x != nil {
		l.site = e.site
		if e.kind == reply {
			l.of = e.x.line
		}
	}
}

func (t *trace) server(site int) string {
	if t.sites > 1 {
		return fmt.Sprintf("s%d", site)
	}
	return "the server"
}

// executed adds a line for a request that reaches its server. Its reply is not known yet.
func (w *world) executed(client, site int, words []string) *line {
	if w.trace == nil {
		return nil
	}
	w.trace.mu.Lock()
	defer w.trace.mu.Unlock()
	l := w.trace.add(client, false, w.trace.sent(site, words))
	l.site = site
	return l
}

// answered adds the reply to the line of its request.
func (t *trace) answered(x *exchange) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges = append(t.exchanges, x)
	if x.line != nil {
		x.line.reply = t.brief(x.answer)
	}
}

// sent formats a command, with its site if there are several.
func (t *trace) sent(site int, words []string) string {
	if t.sites > 1 {
		return fmt.Sprintf("s%d %s", site, t.brief(words))
	}
	return t.brief(words)
}

var calledIn = regexp.MustCompile(`redis\.p?call\(\s*["'](\w+)["']`)

// brief shortens a command or a reply. A script is shown by the commands in it, and a token by its number in the
// order of appearance.
func (t *trace) brief(words []string) string {
	short := slices.Clone(words)
	if len(short) > 2 && strings.EqualFold(short[0], "eval") {
		var calls []string
		for _, c := range calledIn.FindAllStringSubmatch(short[1], -1) {
			if c := strings.ToUpper(c[1]); !slices.Contains(calls, c) {
				calls = append(calls, c)
			}
		}
		short = slices.Concat([]string{"script(" + strings.Join(calls, ",") + ")"}, short[3:])
	}
	for i, word := range short {
		switch {
		case slices.Contains([]string{"set", "nx", "xx", "px", "ex"}, word), i == 0 && len(word) < 12:
			short[i] = strings.ToUpper(word)
		case len(word) <= 16 || strings.HasPrefix(word, "script("):
		case strings.ContainsAny(word, " {:"):
			short[i] = word[:min(len(word), 24)]
		default:
			short[i] = t.token(word)
		}
	}
	return strings.Join(short, " ")
}

// numbered matches tokens as brief writes them. The trace omits the tokens of refused tries, so the other tokens are
// numbered again.
var numbered = regexp.MustCompile(`\bt\d+\b`)

func (t *trace) token(word string) string {
	i := slices.Index(t.tokens, word)
	if i < 0 {
		i = len(t.tokens)
		t.tokens = append(t.tokens, word)
	}
	return fmt.Sprintf("t%d", i+1)
}

// tell merges the clients' records into the trace, up to the violation, and shortens a long trace. It returns the
// number of lines that the trace had before it was shortened.
func (t *trace) tell(h *history.History, v *checker.Verdict) int {
	left := checker.KeepsOut(v.Cause) || v.Cause == history.Leftover // a refused try may have left something
	for i := range h.Ops {
		op := h.Ops[i]
		of := h.Caller(op.Worker)
		if of != op.Worker && op.Kind != history.Store {
			continue // another page of the visit, with the same events
		}
		op.Worker = of
		t.believe(&op, left && slices.ContainsFunc(v.Evidence, func(try history.Op) bool {
			return try.Kind == history.Acquire && h.Caller(try.Worker) == of && try.Call <= op.Return &&
				try.Return >= op.Call
		}))
	}
	slices.SortStableFunc(t.lines, func(a, b *line) int { return int(a.at - b.at) })
	end := ending(h, v)
	if end > 0 {
		t.lines = slices.DeleteFunc(t.lines, func(l *line) bool { return l.at > end })
	} else if n := len(t.lines); n > 0 {
		end = t.lines[n-1].at
	}
	t.fold()
	t.rename()
	whole := len(t.lines)
	if extra := whole - mostLines; extra > 0 {
		const tail = 24
		at := mostLines - tail - 1
		gap := &line{at: t.lines[at].at, now: t.lines[at].now, client: -1, site: -1,
			text: fmt.Sprintf("(%d lines are left out)", extra+1)}
		t.lines = slices.Replace(t.lines, at, whole-tail, gap)
	}
	t.lines = append(t.lines, &line{at: end, now: end, client: -1, site: -1,
		text: fmt.Sprintf("VIOLATION of %s, %s: %s", v.Checker, v.Cause, v.Summary)})
	return whole
}

// rename numbers the tokens again, in the order of the lines.
func (t *trace) rename() {
	names := map[string]string{}
	name := func(old string) string {
		if names[old] == "" {
			names[old] = fmt.Sprintf("t%d", len(names)+1)
		}
		return names[old]
	}
	for _, l := range t.lines {
		l.text = numbered.ReplaceAllStringFunc(l.text, name)
		l.reply = numbered.ReplaceAllStringFunc(l.reply, name)
	}
}

// ending returns the time at which the violation is complete: the last return of its evidence, and of all operations
// of the holds in that evidence.
func ending(h *history.History, v *checker.Verdict) (end time.Duration) {
	if v.Cause == history.LostWakeup { // the cause is that nothing wakes the waiter, until it gives up
		waiter := v.Evidence[0]
		for _, op := range h.Ops {
			if op.Worker == waiter.Worker && op.Call > waiter.Return && (end == 0 || op.Return < end) {
				end = op.Return
			}
		}
		return end
	}
	holds := map[history.ID]bool{}
	for _, op := range v.Evidence {
		holds[op.Hold] = op.Hold != 0
	}
	for _, op := range append(slices.Clone(v.Evidence), h.Ops...) {
		if op.Return != history.Forever && (op.Return <= end || holds[op.Hold] || op.Kind == history.Found) {
			end = max(end, op.Return)
		}
	}
	return end
}

// believe adds a line for an operation: what its client was told, or did. If evidence is true, the operation belongs
// to the violation, and the commands of a refused try stay in the trace.
func (t *trace) believe(op *history.Op, evidence bool) {
	say := func(format string, args ...any) *line {
		return t.said(op, fmt.Sprintf(format, args...))
	}
	switch {
	case op.Kind == history.Acquire && op.Outcome == history.OK && op.Hold != op.ID:
		l := say("has entered again%s", until(op))
		l.until, l.entered = cmp.Or(op.Until, history.Forever), 1
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		l := say("holds the lock%s", until(op))
		l.until, l.entered = cmp.Or(op.Until, history.Forever), 1
	case op.Kind == history.Acquire && op.Outcome == history.Failed:
		t.refused(op, evidence)
	case op.Kind == history.Acquire && op.Return != history.Forever:
		say("does not know whether it was granted: %v", op.Reason)
	case op.Kind == history.Extend && op.Outcome == history.OK:
		say("holds it on%s", until(op)).until = cmp.Or(op.Until, history.Forever)
	case op.Kind == history.Extend && op.Return != history.Forever:
		say("its extension: %v, %v", op.Outcome, op.Reason)
	case op.Kind == history.Lose:
		say("knows that it has lost the lock").entered = -mostEntered
	case op.Kind == history.Store && op.Outcome == history.OK:
		say("stores %d", op.Value)
	case op.Kind == history.Store && op.Outcome == history.Failed:
		say("its store is refused: %v", op.Reason)
	case op.Kind == history.Release && op.Outcome != history.OK && op.Return != history.Forever:
		say("its release: %v, %v", op.Outcome, op.Reason)
	case op.Kind == history.Release && op.Outcome == history.OK:
		say("has released").entered = -1
	}
}

// mostEntered is greater than any client's number of holds.
const mostEntered = 100

func (t *trace) said(op *history.Op, text string) *line {
	l := &line{at: op.Return, now: op.Return, client: int(op.Worker), site: -1, says: []string{text}}
	t.lines = append(t.lines, l)
	return l
}

func until(op *history.Op) string {
	if op.Until == history.Forever || op.Until == 0 {
		return ", without end"
	}
	return " until " + stamp(op.Until)
}

// refused replaces the commands of a refused try by one line, unless the try is evidence or has a deviation.
func (t *trace) refused(op *history.Op, evidence bool) {
	try := func(l *line) bool { return l.client == int(op.Worker) && l.at > op.Call && l.at < op.Return }
	if evidence || slices.ContainsFunc(t.lines, func(l *line) bool { return try(l) && l.star }) {
		t.said(op, fmt.Sprintf("is refused: %v", op.Reason))
		return
	}
	t.lines = slices.DeleteFunc(t.lines, try)
	t.lines = append(t.lines, &line{at: op.Return, now: op.Return, client: int(op.Worker), site: -1, refuse: 1,
		text: op.Reason.String()})
}

// fold joins a command and the client's conclusion from its reply. It also joins refused tries of a client with
// nothing in between.
func (t *trace) fold() {
	last := map[int]*line{}
	var list []*line
	for _, l := range t.lines {
		p := last[l.client]
		switch {
		case p != nil && l.refuse > 0 && p.refuse > 0 && p.text == l.text:
			p.refuse++
			p.reply = stamp(l.now)
			continue
		case p != nil && l.says != nil && !p.star && p.refuse == 0 && l.now/1000 == p.now/1000 &&
			p == list[len(list)-1]:
			p.says = append(p.says, l.says...)
			p.until, p.entered = cmp.Or(l.until, p.until), p.entered+l.entered
			continue
		}
		list = append(list, l)
		last[l.client] = l
	}
	t.lines = list
}

func stamp(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d.Microseconds())/1000) }

func (l *line) what() string {
	all := l.says
	switch {
	case l.refuse > 1:
		return fmt.Sprintf("is refused %d times, until %s (%s)", l.refuse, l.reply, l.text)
	case l.refuse == 1:
		return fmt.Sprintf("is refused (%s)", l.text)
	case l.reply != "":
		all = append([]string{l.text + " -> " + l.reply}, all...)
	case l.text != "":
		all = append([]string{l.text}, all...)
	}
	return strings.Join(all, ", ")
}

func (l *line) String() string {
	star, text := " ", l.what()
	if l.star {
		star = "*"
	}
	if l.client >= 0 {
		text = fmt.Sprintf("w%02d %s", l.client, text)
	}
	return fmt.Sprintf("%10s %s %s", stamp(l.now), star, text)
}
