package model

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
)

// oracle finds the cost of the cheapest story by trying everything at each instant of a small grid. It shares nothing
// with the model but the list of deviations.
type oracle struct {
	p    *Page
	end  time.Duration
	memo map[string]Cost
}

// exact is a state of the oracle: each lease began at one instant.
type exact struct {
	at   time.Duration
	held []begun
	done uint
	back int     // number of restored holds
	gone []begun // forgotten holds that another server may have
}

type begun struct {
	hold    int32
	at, ttl time.Duration
	late    bool
}

const impossible = Cost(1<<64 - 1)

// mostTried is the largest number of states that the oracle tries. With more it gives no answer.
const mostTried = 20_000

func cheapest(p *Page) (least Cost, ok bool) {
	o := &oracle{p: p, memo: map[string]Cost{}}
	for _, c := range p.Calls {
		if o.end = max(o.end, c.From); !c.Unanswered {
			o.end = max(o.end, c.To)
		}
	}
	least = o.best(exact{})
	return least, len(o.memo) < mostTried
}

func (o *oracle) best(s exact) Cost {
	k := s.key()
	if c, ok := o.memo[k]; ok {
		return c
	}
	if len(o.memo) >= mostTried {
		return impossible
	}
	o.memo[k] = impossible // no cycles: a call is done, a hold ends, or time passes
	least := impossible
	try := func(next exact, cost Cost) {
		if c := o.best(next); c != impossible {
			least = min(least, c+cost)
		}
	}
	o.passes(s, try, &least)
	for i, l := range s.held {
		o.ends(s, i, l, try)
	}
	for hold := range o.p.Holds {
		o.restored(s, int32(hold), try)
	}
	for n := range o.p.Calls {
		c := &o.p.Calls[n]
		o.again(s, n, try)
		if s.done>>n&1 == 0 && c.From <= s.at && s.at <= c.To {
			next := s
			next.done |= 1 << n
			o.effect(next, c, try)
		}
	}
	o.memo[k] = least
	return least
}

// passes advances the time, unless a call must have its effect now.
func (o *oracle) passes(s exact, try func(exact, Cost), least *Cost) {
	for n, c := range o.p.Calls {
		if c.To == s.at && s.done>>n&1 == 0 {
			return
		}
	}
	if s.at == o.end {
		*least = 0
		return
	}
	s.at++
	try(s, 0)
}

func (s *exact) key() string {
	b := append(make([]byte, 0, 32), byte(s.at), byte(s.done), byte(s.done>>8), byte(s.back))
	for _, l := range slices.Concat(s.held, []begun{{hold: -1}}, s.gone) {
		b = append(b, byte(l.hold), byte(l.at), byte(l.ttl), 0)
		if l.late {
			b[len(b)-1] = 1
		}
	}
	return string(b)
}

func (s exact) without(i int) exact {
	s.held = slices.Delete(slices.Clone(s.held), i, i+1)
	return s
}

func (s exact) with(l begun) exact {
	s.held = slices.Clone(s.held)
	if i := s.find(l.hold); i >= 0 {
		s.held[i] = l
	} else {
		s.held = append(s.held, l)
	}
	return s
}

func (s exact) alone(l begun) exact {
	s.held = []begun{l}
	return s
}

func (s exact) find(hold int32) int {
	return slices.IndexFunc(s.held, func(l begun) bool { return l.hold == hold })
}

func (o *oracle) ends(s exact, i int, l begun, try func(exact, Cost)) {
	if s.at >= plus(l.at, o.p.Least(l.ttl)) {
		try(s.without(i), 0)
	} else {
		try(s.without(i), prematureLoss.cost())
	}
	o.forgotten(s, i, l, 0, try)
	for _, w := range o.p.Windows { // another server may still have it, and keep it too long
		if !o.p.Single && !l.late && w.Late && w.From <= min(s.at, plus(l.at, o.p.Most(l.ttl))) && w.To >= l.at {
			late := l
			late.late = true
			o.forgotten(s, i, late, w.cost(), try)
		}
	}
}

// forgotten lets a server forget a hold.
func (o *oracle) forgotten(s exact, i int, l begun, cost Cost, try func(exact, Cost)) {
	for _, w := range o.p.Windows {
		if w.Forgets && w.From <= s.at && s.at <= w.To {
			next := s.without(i)
			if !o.p.Single {
				next.gone = slices.DeleteFunc(slices.Clone(s.gone), func(g begun) bool { return g.hold == l.hold })
				next.gone = append(next.gone, l)
			}
			try(next, cost+w.cost())
		}
	}
}

// proven reports whether an answer shows that a hold was granted.
func (o *oracle) proven(hold int32) bool {
	return slices.ContainsFunc(o.p.Calls, func(c Call) bool {
		return c.Hold == hold && !c.Unanswered && c.Kind != Grant && c.Kind != Lost
	})
}

// granted reports whether a hold's acquire has had its effect.
func (o *oracle) granted(s *exact, hold int32) bool {
	for n, c := range o.p.Calls {
		if c.Hold == hold && c.Kind == Grant && s.done>>n&1 != 0 {
			return true
		}
	}
	return false
}

// effect applies a call. With several sites, some may have begun the lease earlier.
func (o *oracle) effect(s exact, c *Call, try func(exact, Cost)) {
	first := s.at
	if o.p.Sites > 1 && c.Kind <= Extend {
		first = c.From
	}
	for at := s.at; at >= first; at-- {
		o.affects(s, c, at, try)
	}
}

func (o *oracle) affects(s exact, c *Call, from time.Duration, try func(exact, Cost)) {
	for _, x := range o.p.Calls { // a client that knows of its grant calls after it
		heard := x.Hold == c.Hold && x.Kind == Grant && !x.Unanswered && x.From < c.From
		if c.Kind != Grant && heard && !o.granted(&s, c.Hold) {
			return
		}
	}
	i, l := s.find(c.Hold), begun{c.Hold, from, c.TTL, c.Open}
	if c.Kind == Grant && c.Unanswered && !o.proven(c.Hold) {
		once := try
		try = func(next exact, cost Cost) { once(next, cost+unproven) }
	}
	switch {
	case c.Kind == Grant && len(s.held) == 0:
		try(s.alone(l), 0)
	case c.Kind == Grant:
		try(s.alone(l), doubleGrant.cost())
		if o.p.Sites > 1 && len(s.held) < mostHeld {
			try(s.with(l), doubleGrant.cost())
		}
	case c.Kind == Lost && i < 0:
		try(s, 0)
	case c.Kind == Lost && c.Busy:
		try(s, oneDeviation)
	case c.Kind == Lost:
		try(s, falseRefusal.cost())
	case i >= 0:
		o.own(s, c, i, l, try)
	default:
		o.elsewhere(s, c, l, try)
		o.others(s, c, l, try)
	}
}

// elsewhere lets a server answer that still has a hold which another one forgot.
func (o *oracle) elsewhere(s exact, c *Call, l begun, try func(exact, Cost)) {
	for i, g := range s.gone {
		if g.hold != c.Hold || c.Endless || c.Kind == Seen && c.Server == 0 ||
			!g.late && s.at > plus(g.at, o.p.Most(g.ttl)) {
			continue
		}
		next := s
		switch next.gone = slices.Clone(s.gone); c.Kind {
		case Extend:
			next.gone[i] = l
		case Release:
			next.gone = slices.Delete(next.gone, i, i+1)
		}
		try(next, 0)
	}
}

func (o *oracle) own(s exact, c *Call, i int, l begun, try func(exact, Cost)) {
	held := s.held[i]
	after := func(held begun) exact {
		switch c.Kind {
		case Extend:
			return s.with(l)
		case Release:
			return s.without(i)
		}
		return s.with(held)
	}
	stretched := held
	stretched.late = true
	over := !held.late && c.looks(s.at) > plus(held.at, o.p.Most(held.ttl))
	switch {
	case c.Endless && !held.late:
		if !over {
			try(after(stretched), ttlTooLong.cost())
		}
		return
	case !over:
		kept := leak.cost()
		if !o.p.Owned {
			kept = 0
		}
		if c.Kind == Release && !c.Unanswered {
			try(s, kept)
		}
		try(after(held), 0)
		if c.Kind == Extend && !c.Unanswered {
			try(s, falseExtension.cost())
		}
	case !c.Unanswered:
		try(after(stretched), ttlTooLong.cost())
	}
	for _, w := range o.p.Windows {
		if !held.late && w.Late && w.From <= min(s.at, plus(held.at, o.p.Most(held.ttl))) && w.To >= held.at {
			try(after(stretched), w.cost())
		}
	}
}

// restored lets a hold come back.
func (o *oracle) restored(s exact, hold int32, try func(exact, Cost)) {
	if !o.granted(&s, hold) || s.back == 2 || s.find(hold) >= 0 {
		return
	}
	var first, last *Call
	given := false
	for n := range o.p.Calls {
		x := &o.p.Calls[n]
		given = given || x.Hold == hold && x.Kind == Release && s.done>>n&1 != 0
		switch {
		case x.Hold != hold || s.done>>n&1 == 0 || x.Unanswered && x.Kind == Extend:
		case x.Kind == Grant:
			if first = x; last == nil {
				last = x
			}
		case x.Kind == Extend && (last == nil || last.Kind == Grant || x.To > last.To):
			last = x
		}
	}
	s.back++
	for _, w := range o.p.Windows {
		if !w.Restores && (!w.Revives || given) || s.at < w.From || s.at > w.To {
			continue
		}
		for at := first.From; at <= min(last.To, s.at); at++ {
			next := s.alone(begun{hold, at, last.TTL, w.Late || last.Open})
			next.gone = slices.DeleteFunc(slices.Clone(s.gone), func(g begun) bool { return g.hold == hold })
			try(next, w.cost())
		}
	}
}

// again lets a slow release have a second effect.
func (o *oracle) again(s exact, n int, try func(exact, Cost)) {
	c := &o.p.Calls[n]
	if o.p.Patient == 0 || c.Kind != Release || c.Unanswered || s.done>>n&1 == 0 || s.at > c.To ||
		c.To-c.From < o.p.Patient {
		return
	}
	for i, l := range s.held {
		if l.hold != c.Hold && (l.late || s.at <= plus(l.at, o.p.Most(l.ttl))) {
			try(s.without(i), foreignRelease.cost()+onePrior)
		}
	}
}

func (o *oracle) others(s exact, c *Call, l begun, try func(exact, Cost)) {
	switch c.Kind {
	case Seen:
		for _, x := range o.p.Calls {
			if x.Hold == c.Hold && x.Kind == Grant {
				l.ttl = x.TTL
			}
		}
		try(s.alone(l), phantom.cost()) // a double grant that only a sighting shows costs as much
	case Extend:
		switch {
		case !c.Anew:
		case len(s.held) == 0:
			try(s.alone(l), 0)
		default:
			try(s.alone(l), doubleGrant.cost())
		}
		if o.granted(&s, c.Hold) {
			try(s.alone(l), silentReacquire.cost())
		}
		if !c.Unanswered && o.granted(&s, c.Hold) {
			try(s, falseExtension.cost())
		} else if !c.Unanswered {
			try(s, falseExtension.cost()+unproven)
		}
	case Release:
		for i, l := range s.held {
			if l.late || s.at <= plus(l.at, o.p.Most(l.ttl)) {
				cost := foreignRelease.cost()
				if c.Unanswered {
					cost += unheard
				}
				try(s.without(i), cost)
			}
		}
		if c.Unanswered {
			return
		}
		if !o.p.Owned {
			try(s, 0)
			return
		}
		for n := range o.p.Calls {
			if x := &o.p.Calls[n]; x.Hold == c.Hold && x.Kind == Release && x.To < c.From {
				try(s, doubleRelease.cost())
				return
			}
		}
		try(s, falseRelease.cost())
	}
}

func draw(r *rand.Rand) *Page {
	p := &Page{Rules: Rules{Expires: r.IntN(5) > 0, Owned: r.IntN(4) > 0, Round: time.Duration(r.IntN(2)),
		Sites: 3 * (r.IntN(4) / 3), Single: r.IntN(2) == 0, Patient: time.Duration(2 * r.IntN(2))}}
	many := 3 + r.IntN(4)
	if r.IntN(5) < 2 {
		w := Window{From: time.Duration(r.IntN(9)), Planned: r.IntN(2) == 0, Forgets: r.IntN(3) > 0}
		w.To, w.Late = w.From+time.Duration(r.IntN(3)), !w.Forgets || r.IntN(2) == 0
		w.Restores = w.Forgets && r.IntN(3) > 0
		w.Revives = w.Forgets && !w.Restores && r.IntN(2) == 0
		p.Windows = append(p.Windows, w)
	}
	for len(p.Calls) < many {
		hold := int32(len(p.Holds))
		p.Holds = append(p.Holds, Hold{})
		at := time.Duration(r.IntN(6))
		for n := range 1 + r.IntN(4) {
			if len(p.Calls) == many {
				break
			}
			c := Call{ID: history.ID(len(p.Calls) + 1), Hold: hold, TTL: time.Duration(2 + r.IntN(4)),
				From: at + time.Duration(r.IntN(3))}
			c.To = c.From + time.Duration(r.IntN(4))
			if n > 0 {
				c.Kind = []Kind{Extend, Release, Release, Lost, Seen}[r.IntN(5)]
				c.Busy, c.Endless = c.Kind == Lost && r.IntN(3) == 0, c.Kind == Seen && r.IntN(8) == 0
				c.Server = r.IntN(2)
				c.Anew = c.Kind == Extend && r.IntN(3) == 0
			}
			if c.Kind <= Extend {
				c.Open = r.IntN(10) == 0
			}
			at = c.To + time.Duration(r.IntN(2))
			if c.Kind < Lost && r.IntN(5) == 0 {
				c.Unanswered, c.To = true, history.Forever
			}
			p.Calls = append(p.Calls, c)
		}
	}
	if first := p.Calls[0].To; len(p.Windows) > 0 && first != history.Forever && r.IntN(2) == 0 { // after a grant
		w := &p.Windows[0]
		w.From, w.To = first+1, first+1+w.To-w.From
	}
	return p
}

func (p *Page) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v windows %+v\n", p.Rules, p.Windows)
	for _, c := range p.Calls {
		fmt.Fprintf(&b, "  %+v\n", c)
	}
	return b.String()
}

// differs compares the model with the oracle on a page.
func differs(p *Page) string {
	want, ok := cheapest(p)
	got := Explain(p, Bounds{Instants: true})
	switch {
	case !ok:
		return replay(p, got)
	case got.Status != Explained:
		return fmt.Sprintf("status %d, the oracle says %v", got.Status, want)
	case want.Deviations() > 3 && got.Cost.Deviations() >= want.Deviations(): // the search stays close to the best
	case want.Faults()+want.Accidents() > 2 && got.Cost.Deviations() == want.Deviations():
	case got.Cost.counted() != want.counted() || got.Cost < want && (p.Single || len(p.Windows) == 0):
		return fmt.Sprintf("the model says %v, the oracle %v", got.Cost, want)
	}
	return replay(p, got)
}

// smaller drops calls and windows while the model and the oracle still differ.
func smaller(p *Page) *Page {
	for again := true; again; {
		again = false
		for i := range p.Calls {
			q := *p
			q.Calls = slices.Delete(slices.Clone(p.Calls), i, i+1)
			if differs(&q) != "" {
				p, again = &q, true
				break
			}
		}
		if q := *p; len(q.Windows) > 0 {
			if q.Windows = nil; differs(&q) != "" {
				p, again = &q, true
			}
		}
	}
	return p
}

// TestOracle compares the cheapest stories of small random pages with an exhaustive search.
func TestOracle(t *testing.T) {
	t.Parallel()
	many := uint64(5_000)
	switch {
	case testing.Short():
		many = 1_500
	case live.Nightly():
		many = 20_000
	}
	kinds, clean, unusual := map[string]int{}, 0, 0
	for seed := range many {
		p := draw(rand.New(rand.NewPCG(seed, 1)))
		if differs(p) == "" {
			s := Explain(p, Bounds{Instants: true})
			if s.Cost == 0 {
				clean++
			} else if least, ok := cheapest(p); ok && s.Cost != least {
				unusual++
			}
			for _, step := range s.Steps {
				if step.Deviation != nil {
					kinds[step.Deviation.Name]++
				}
			}
			continue
		}
		p = smaller(p)
		s := Explain(p, Bounds{Instants: true})
		t.Fatalf("seed %d: %s\n%v%s", seed, differs(p), p, show(s))
	}
	t.Logf("%d of %d have a story without any cost; %d a more usual one; deviations: %v", clean, many, unusual, kinds)
	if clean < int(many/20) || unusual > int(many/50) || len(kinds) < len(Deviations)-1 {
		t.Errorf("%d of %d pages have a story without any cost, %d a more usual one: %v", clean, many, unusual, kinds)
	}
}

func show(s Story) string {
	var b strings.Builder
	for _, x := range s.Steps {
		name := "-"
		if x.Deviation != nil {
			name = x.Deviation.Name
		}
		fmt.Fprintf(&b, "  at %d %v call %v kind %d hold %d %s\n", x.At, x.Event, x.Call, x.Kind, x.Hold, name)
	}
	return b.String()
}

// replay checks that each step of a story is legal at its instant.
func replay(p *Page, s Story) string {
	if p.Sites > 1 {
		return "" // a story does not say when each lease of a site began
	}
	o, state := &oracle{p: p}, exact{}
	byID := map[history.ID]int{}
	for n := range p.Calls {
		byID[p.Calls[n].ID] = n
	}
	seen := map[history.ID]bool{}
	for i, x := range s.Steps {
		if state.at = max(state.at, x.At); i > 0 && s.Steps[i-1].At > x.At {
			return "the steps are not in order"
		}
		if x.Event != Effect {
			var wrong string
			if state, wrong = spontaneously(p, state, x); wrong != "" {
				return fmt.Sprintf("step %d: hold %d %s", i, x.Hold, wrong)
			}
			continue
		}
		n, known := byID[x.Call]
		c := &p.Calls[n]
		if !known || seen[x.Call] != x.Again || x.At < c.From || x.At > c.To {
			return fmt.Sprintf("step %d: call %v at %v is unknown, repeated, or outside of its time", i, x.Call, x.At)
		}
		seen[x.Call], state.done = true, state.done|1<<n
		if x.Elsewhere {
			continue
		}
		if x.Deviation != nil {
			state = deviated(p, state, c, x)
			continue
		}
		legal := false
		o.effect(state, c, func(next exact, cost Cost) {
			if cost == 0 {
				state, legal = next, true
			}
		})
		if !legal {
			return fmt.Sprintf("step %d: call %v is not legal at %v in %+v", i, x.Call, x.At, state)
		}
	}
	for _, c := range p.Calls {
		if !c.Unanswered && !seen[c.ID] {
			return fmt.Sprintf("call %v has no instant", c.ID)
		}
	}
	return ""
}

// spontaneously returns the state after a step without a call, and what is wrong with the step.
func spontaneously(p *Page, s exact, x Step) (exact, string) {
	at := s.find(x.Hold)
	switch {
	case x.Event == Restored:
		s.gone = slices.DeleteFunc(slices.Clone(s.gone), func(g begun) bool { return g.hold == x.Hold })
		late := x.Window >= 0 && p.Windows[x.Window].Late ||
			slices.ContainsFunc(p.Calls, func(c Call) bool { return c.Hold == x.Hold && c.Open })
		return s.alone(begun{x.Hold, x.Began, x.TTL, late}), ""
	case at < 0:
		return s, "is over"
	case x.Event == Stretched:
		l := s.held[at]
		l.late = true
		return s.with(l), ""
	case x.Event == LeaseEnd && x.Deviation == nil && x.At < plus(s.held[at].at, p.Least(s.held[at].ttl)):
		return s, "ends too early"
	case x.Event == Forgotten && !p.Single:
		s.gone = append(slices.Clip(s.gone), s.held[at])
	}
	return s.without(at), ""
}

func deviated(p *Page, s exact, c *Call, x Step) exact {
	l := begun{c.Hold, s.at, c.TTL, c.Open}
	switch i := s.find(c.Hold); x.Deviation {
	case &Deviations[doubleGrant]:
		for _, g := range p.Calls {
			if c.Kind == Seen && g.Hold == c.Hold && g.Kind == Grant {
				l.ttl = g.TTL
			}
		}
		if x.Alone {
			return s.alone(l)
		}
		return s.with(l)
	case &Deviations[phantom]:
		for _, g := range p.Calls {
			if g.Hold == c.Hold && g.Kind == Grant {
				l.ttl = g.TTL
			}
		}
		return s.alone(l)
	case &Deviations[silentReacquire]:
		return s.alone(l)
	case &Deviations[foreignRelease]:
		return s.without(cmp.Or(max(s.find(x.Against), 0)))
	case &Deviations[ttlTooLong]:
		if c.Kind == Release {
			return s.without(i)
		} else if c.Kind == Extend {
			return s.with(l)
		}
		l = s.held[i]
		l.late = true
		return s.with(l)
	}
	return s
}

// TestARefusalHoldsUpNoGrant: a call was answered that its hold is over. The hold may have ended long before this
// answer. So another grant, in progress at that time, may have come earlier, and its lease may end earlier, too.
func TestARefusalHoldsUpNoGrant(t *testing.T) {
	p := &Page{Rules: Rules{Expires: true, Owned: true, Single: true}, Holds: make([]Hold, 3), Calls: []Call{
		{ID: 1, Hold: 0, Kind: Grant, From: 1, To: 1, TTL: 10},
		{ID: 2, Hold: 1, Kind: Grant, From: 5, To: 22, TTL: 10},
		{ID: 3, Hold: 0, Kind: Lost, From: 20, To: 21},
		{ID: 4, Hold: 1, Kind: Seen, From: 23, To: 23},
		{ID: 5, Hold: 2, Kind: Grant, From: 25, To: 26, TTL: 10},
	}}
	if s := Explain(p, Bounds{}); s.Status != Explained || s.Cost != 0 {
		t.Errorf("%v, %v: %+v", s.Status, s.Cost, s.Steps)
	}
	if text := differs(p); text != "" {
		t.Error(text)
	}
}
