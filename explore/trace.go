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

// mostLines is how long a trace is at most.
const mostLines = 39 // and the verdict

// trace is what a schedule did, for people.
type trace struct {
	clock  *history.Clock
	lines  []*line
	tokens []string
	sites  int
	steps  []step // what the schedule let happen

	mu        sync.Mutex  // guards all of it while clients run
	exchanges []*exchange // in the order of the replies
}

// line is something that happened, at a place in the order of everything.
type line struct {
	at     time.Duration // a stamp
	now    time.Duration // the time, which stops while messages move
	client int
	star   bool // a deviation
	text   string
	reply  string
	told   bool // what the client made of an answer: it follows the command in the same line
	refuse int  // how many refused tries
}

// add takes a line down.
func (t *trace) add(client int, star bool, text string) *line {
	l := &line{at: t.clock.Stamp(), now: t.clock.Now(), client: client, star: star, text: text}
	t.lines = append(t.lines, l)
	return l
}

// deviation takes down what is not the default.
func (t *trace) deviation(s *schedule, o option) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	what := "its " + kinds[o.e.kind]
	if x := o.e.x; x != nil {
		what = t.sent(o.e.site, o.e.words)
		if o.e.kind == reply && !x.pushed {
			what = "the reply to " + what
		}
	}
	switch o.act {
	case pauses:
		t.add(o.e.client, true, fmt.Sprintf("is paused for %v, before %s", s.o.Pause, what))
	case expires:
		t.add(o.e.client, true, fmt.Sprintf("messages are slow, until the next key expires: before %s", what))
	case loses:
		t.add(o.e.client, true, what+" is lost")
	case breaks:
		t.add(o.e.client, true, "connection breaks: no "+what)
	case crashes:
		t.add(o.e.client, true, "crashes, before "+what)
	case cancelsCall:
		t.add(o.e.client, true, "has its call called off, before "+what)
	case refuses:
		t.add(o.e.client, true, what+" is answered an error: "+refusal)
	case hangs:
		t.server(o, fmt.Sprintf("hangs for %v, before %s", s.hangsFor(), what))
	case forgets:
		t.server(o, "forgets all keys, before "+what)
	case leaps:
		t.server(o, fmt.Sprintf("has its clock jump %v ahead, before %s",
			cmp.Or(s.o.Leap, firstExpiry(s.servers[o.e.site])), what))
	case dies:
		t.server(o, "never answers again, before "+what)
	case letGo:
		if o.e.x != nil && o.e.x.pushed {
			t.add(o.e.client, false, "hears "+what)
		}
		if len(s.taken) > 0 && s.taken[len(s.taken)-1].At == len(s.options)-1 {
			t.add(o.e.client, true, "comes first, with "+what)
		}
	}
}

// server takes down what happens to a server before it gets a request.
func (t *trace) server(o option, text string) {
	name := "the server"
	if t.sites > 1 {
		name = fmt.Sprintf("s%d", o.e.site)
	}
	t.add(-1, true, fmt.Sprintf("%s %s of w%02d", name, text, o.e.client))
}

// executed takes a request down that reaches its server. It returns the line, whose reply is not known yet.
func (w *world) executed(client, site int, words []string) *line {
	if w.trace == nil {
		return nil
	}
	w.trace.mu.Lock()
	defer w.trace.mu.Unlock()
	return w.trace.add(client, false, w.trace.sent(site, words))
}

// answered takes the reply to a request down.
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

// sent writes a command, with its site if there are several.
func (t *trace) sent(site int, words []string) string {
	if t.sites > 1 {
		return fmt.Sprintf("s%d %s", site, t.brief(words))
	}
	return t.brief(words)
}

var calledIn = regexp.MustCompile(`redis\.p?call\(\s*["'](\w+)["']`)

// brief writes a command or a reply. A script is what it calls, a token its number in the order of appearance.
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

// numbered are tokens as brief writes them. Those of refused tries are gone from the trace, so the rest is numbered
// again.
var numbered = regexp.MustCompile(`\bt\d+\b`)

// token numbers a token.
func (t *trace) token(word string) string {
	i := slices.Index(t.tokens, word)
	if i < 0 {
		i = len(t.tokens)
		t.tokens = append(t.tokens, word)
	}
	return fmt.Sprintf("t%d", i+1)
}

// tell merges what the clients recorded into what was sent, up to the violation.
func (t *trace) tell(h *history.History, v *checker.Verdict) []string {
	for i := range h.Ops {
		op := h.Ops[i]
		of := h.Caller(op.Worker)
		if of != op.Worker && op.Kind != history.Store {
			continue // another page of a visit, to which the same happened
		}
		op.Worker = of
		t.believe(&op, v.Cause == history.PartKept && h.Caller(v.Evidence[0].Worker) == of &&
			v.Evidence[0].Call <= op.Return && v.Evidence[0].Return >= op.Call)
	}
	slices.SortStableFunc(t.lines, func(a, b *line) int { return int(a.at - b.at) })
	end := ending(h, v)
	if end > 0 {
		t.lines = slices.DeleteFunc(t.lines, func(l *line) bool { return l.at > end })
	} else if n := len(t.lines); n > 0 {
		end = t.lines[n-1].at
	}
	t.fold()
	var out []string
	names := map[string]string{}
	for _, l := range t.lines {
		out = append(out, numbered.ReplaceAllStringFunc(l.String(), func(old string) string {
			if names[old] == "" {
				names[old] = fmt.Sprintf("t%d", len(names)+1)
			}
			return names[old]
		}))
	}
	if extra := len(out) - mostLines; extra > 0 {
		const tail = 24
		at := mostLines - tail - 1
		out = slices.Replace(out, at, len(out)-tail, fmt.Sprintf("%10s  (%d lines are left out)", "", extra+1))
	}
	return append(out, fmt.Sprintf("%10s   VIOLATION of %s, %s: %s", stamp(end), v.Checker, v.Cause, v.Summary))
}

// ending is when everything has happened that the verdict speaks of: the evidence, and what else the holds in it did.
func ending(h *history.History, v *checker.Verdict) (end time.Duration) {
	if v.Cause == history.LostWakeup { // it shows in what does not happen, until its waiter gives up to wait
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

// believe says what a client was told, or did. The commands of a refusal that is evidence stay.
func (t *trace) believe(op *history.Op, evidence bool) {
	say := func(format string, args ...any) {
		t.lines = append(t.lines, &line{at: op.Return, now: op.Return, client: int(op.Worker), told: true,
			text: fmt.Sprintf(format, args...)})
	}
	switch {
	case op.Kind == history.Acquire && op.Outcome == history.OK && op.Hold != op.ID:
		say("has entered again%s", until(op))
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		say("holds the lock%s", until(op))
	case op.Kind == history.Acquire && op.Outcome == history.Failed:
		t.refused(op, evidence)
	case op.Kind == history.Acquire && op.Return != history.Forever:
		say("does not know whether it was granted: %v", op.Reason)
	case op.Kind == history.Extend && op.Outcome == history.OK:
		say("holds it on%s", until(op))
	case op.Kind == history.Extend && op.Return != history.Forever:
		say("its extension: %v, %v", op.Outcome, op.Reason)
	case op.Kind == history.Lose:
		say("knows that it has lost the lock")
	case op.Kind == history.Store && op.Outcome == history.OK:
		say("stores %d", op.Value)
	case op.Kind == history.Store && op.Outcome == history.Failed:
		say("its store is refused: %v", op.Reason)
	case op.Kind == history.Release && op.Outcome != history.OK && op.Return != history.Forever:
		say("its release: %v, %v", op.Outcome, op.Reason)
	case op.Kind == history.Release && op.Outcome == history.OK:
		say("has released")
	}
}

func until(op *history.Op) string {
	if op.Until == history.Forever || op.Until == 0 {
		return ", without end"
	}
	return " until " + stamp(op.Until)
}

// refused replaces the commands of a refused try.
func (t *trace) refused(op *history.Op, evidence bool) {
	try := func(l *line) bool { return l.client == int(op.Worker) && l.at > op.Call && l.at < op.Return }
	if evidence || slices.ContainsFunc(t.lines, func(l *line) bool { return try(l) && l.star }) {
		t.lines = append(t.lines, &line{at: op.Return, now: op.Return, client: int(op.Worker), told: true,
			text: fmt.Sprintf("is refused: %v", op.Reason)})
		return
	}
	t.lines = slices.DeleteFunc(t.lines, try)
	t.lines = append(t.lines, &line{at: op.Return, now: op.Return, client: int(op.Worker), refuse: 1,
		text: op.Reason.String()})
}

// fold makes one line of what belongs together: a command and what its client made of the answer; refused tries that
// nothing of the same client comes between.
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
		case p != nil && l.told && !p.star && p.refuse == 0 && l.now/1000 == p.now/1000 && p == list[len(list)-1]:
			if p.reply != "" {
				p.text, p.reply = p.text+" -> "+p.reply, ""
			}
			p.text += ", " + l.text
			continue
		}
		list = append(list, l)
		last[l.client] = l
	}
	t.lines = list
}

// stamp writes a time in milliseconds.
func stamp(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d.Microseconds())/1000) }

// String is the line as it is printed: time in milliseconds, a star for a deviation, client, what happened.
func (l *line) String() string {
	star, text := " ", l.text
	if l.star {
		star = "*"
	}
	switch {
	case l.refuse > 1:
		text = fmt.Sprintf("is refused %d times, until %s (%s)", l.refuse, l.reply, l.text)
	case l.refuse == 1:
		text = fmt.Sprintf("is refused (%s)", l.text)
	case l.reply != "":
		text += " -> " + l.reply
	}
	if l.client >= 0 {
		text = fmt.Sprintf("w%02d %s", l.client, text)
	}
	return fmt.Sprintf("%10s %s %s", stamp(l.now), star, text)
}
