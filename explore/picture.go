package explore

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// Measures of a picture, in pixels.
const (
	rowHeight   = 40
	topOfRows   = 84
	clockWidth  = 70
	aside       = 240 // room beside a lifeline for the conclusions of the client
	commandWide = 290 // distance between a client and the first server
	abreast     = 120 // distance between servers
	lineHeight  = 13
)

// pictureStyle adapts to the light or dark colours of the page.
const pictureStyle = `<style>
svg{font:12px sans-serif}.head{font-weight:bold;font-size:14px}
text{fill:#16202c;stroke:#fff;stroke-width:3px;paint-order:stroke}path,line{stroke:#16202c;fill:none}
.ground,.store{fill:#fff}.soft{fill:#5a6877}.bar{fill:#2a78d6}.band{fill:#fde3d0}
text.odd{fill:#c2410c}path.odd{stroke:#c2410c}
@media(prefers-color-scheme:dark){text{fill:#e7edf3;stroke:#161d26}path,line{stroke:#e7edf3}
.ground,.store{fill:#161d26}.soft{fill:#9aa8b6}.bar{fill:#3987e5}.band{fill:#4a2f20}
text.odd{fill:#ff9b62}path.odd{stroke:#ff9b62}}
line{stroke-dasharray:2 4;opacity:.5}.answer{stroke-dasharray:5 3}.tip{stroke-dasharray:none}
</style>
`

// picture draws a counterexample as a sequence diagram. It has a row for each line of the trace, and arrows for
// commands and replies. The bar on a client's lifeline is the time for which the client believes that it has a lease.
type picture struct {
	strings.Builder
	lines   []*line
	clients []int // horizontal positions of the lifelines
	servers []int
	right   int // number of the first client on the right of the servers
	wide    int
	rows    []int // vertical positions of the lines
}

// picture draws the lines of a trace that the method tell has shortened.
func (t *trace) picture(clients int) string {
	p := &picture{lines: t.lines, right: (clients + 1) / 2}
	p.place()
	x := clockWidth
	for i := range clients {
		if i < p.right {
			x += aside
		}
		if p.clients = append(p.clients, x); i >= p.right {
			x += aside
		}
		if i == p.right-1 {
			x += commandWide
			for range t.sites {
				p.servers = append(p.servers, x)
				x += abreast
			}
			x += commandWide - abreast
		}
	}
	p.wide = x
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d">`,
		p.wide, p.bottom()+70)
	verdict := p.lines[len(p.lines)-1].text
	fmt.Fprintf(p, "<title>%s</title>\n%s", html.EscapeString(verdict), pictureStyle)
	fmt.Fprintf(p, `<rect class="ground" width="%d" height="%d"/>`+"\n", p.wide, p.bottom()+70)
	for _, l := range p.lines {
		p.band(l)
	}
	for i, x := range p.clients {
		p.lifeline(x, fmt.Sprintf("w%02d", i), p.end(func(l *line) bool { return l.act == crashes && l.client == i }))
		p.leases(i)
	}
	for i, x := range p.servers {
		p.lifeline(x, strings.TrimPrefix(t.server(i), "the "),
			p.end(func(l *line) bool { return l.act == dies && l.site == i }))
	}
	for _, l := range p.lines {
		p.row(l)
	}
	p.text(clockWidth-12, topOfRows-40, "soft", "end", "ms")
	p.text(clockWidth, p.bottom()+50, "soft", "start", "bar: the client's lease as far as it knows; diamond: a store; "+
		"dashed: an answer; *: a deviation; times are virtual")
	p.WriteString("</svg>\n")
	return p.String()
}

// place computes the vertical positions of the rows, with room above each for a long command.
func (p *picture) place() {
	y := topOfRows - rowHeight
	for _, l := range p.lines {
		if y += rowHeight; l.site >= 0 && !l.star {
			y += lineHeight * (len(wrapped(l.text, commandWide/7)) - 1)
		}
		p.rows = append(p.rows, y)
	}
}

func (p *picture) y(l *line) int { return p.rows[slices.Index(p.lines, l)] }

// bottom returns the position of the last row, which is the verdict.
func (p *picture) bottom() int { return p.rows[len(p.rows)-1] }

// atTime returns the position of a moment of virtual time, which may be between two rows.
func (p *picture) atTime(at time.Duration) int {
	next := slices.IndexFunc(p.lines, func(l *line) bool { return l.now >= at })
	switch {
	case next < 0:
		return p.bottom()
	case p.lines[next].now == at:
		return p.y(p.lines[next])
	}
	from, to := p.lines[next-1].now, p.lines[next].now
	return p.rows[next-1] + int(time.Duration(p.rows[next]-p.rows[next-1])*(at-from)/(to-from))
}

// end returns the position at which the lifeline of a client or server ends: where it dies, or at the bottom.
func (p *picture) end(dies func(*line) bool) int {
	if at := slices.IndexFunc(p.lines, dies); at >= 0 {
		return p.y(p.lines[at])
	}
	return p.bottom()
}

func (p *picture) lifeline(x int, name string, end int) {
	fmt.Fprintf(p, `<line x1="%d" x2="%[1]d" y1="%d" y2="%d"/>`+"\n", x, topOfRows-30, end)
	p.text(x, topOfRows-40, "head", "middle", name)
}

// band marks the time for which a client is paused, a server hangs, or messages are delayed.
func (p *picture) band(l *line) {
	if l.lasts == 0 {
		return
	}
	from, wide := 0, 26
	switch {
	case l.act == expires:
		from, wide = clockWidth, p.wide-clockWidth
	case l.client < 0:
		from = p.servers[l.site] - wide/2
	default:
		from = p.clients[l.client] - wide/2
	}
	fmt.Fprintf(p, `<rect class="band" x="%d" y="%d" width="%d" height="%d"/>`+"\n", from, p.y(l), wide,
		p.atTime(l.now+l.lasts)-p.y(l))
}

// leases draws a bar for each lease of a client. A bar begins when the client learns of its lease. It ends with the
// lease, or earlier, when the client learns that it has released or lost the lock.
func (p *picture) leases(client int) {
	var from, last *line
	entered := 0
	end := func(y int) {
		if from != nil {
			fmt.Fprintf(p, `<rect class="bar" x="%d" y="%d" width="8" height="%d"/>`+"\n", p.clients[client]-4,
				p.told(from), max(y-p.told(from), 2))
		}
		from, last, entered = nil, nil, 0
	}
	for _, l := range p.lines {
		if last != nil && l.now > last.until {
			end(p.atTime(last.until))
		}
		if l.client != client {
			continue
		}
		if l.until > 0 {
			from, last = cmp.Or(from, l), l
		}
		if entered += l.entered; l.act == crashes || entered <= 0 && l.entered < 0 {
			end(p.told(l))
		}
	}
	end(p.bottom())
}

// told returns the y coordinate at which the client knows the result of a line. The result of a message is half a row
// lower than the message.
func (p *picture) told(l *line) int {
	if l.site >= 0 && !l.star {
		return p.y(l) + rowHeight/2
	}
	return p.y(l)
}

func (p *picture) row(l *line) {
	y := p.y(l)
	p.text(clockWidth-12, y+4, "soft", "end", stamp(l.now))
	switch {
	case l.client < 0 && !l.star: // the verdict, or a gap in the trace
		p.text(clockWidth, y+4, "odd", "start", wrapped(l.text, p.wide/7)...)
		return
	case l.client < 0:
		p.text(p.servers[l.site], y-8, "odd", "middle", wrapped("* "+l.text, aside/7)...)
		p.cross(p.servers[l.site], y+14, l.act == dies)
		return
	}
	x, out := p.clients[l.client], 1
	if l.client < p.right {
		out = -1
	}
	what, class := l.says, ""
	switch {
	case l.star:
		what, class = []string{"* " + l.text}, "odd"
	case l.refuse > 0:
		what, class = []string{l.what()}, "soft"
	}
	if slices.ContainsFunc(l.says, func(s string) bool { return strings.HasPrefix(s, "stores ") }) {
		fmt.Fprintf(p, `<path class="store" d="M%d %dl7 7-7 7-7-7z"/>`+"\n", x, p.told(l)-7)
	}
	beside := wrapped(strings.Join(what, ", "), aside/7)
	p.text(x+14*out, p.told(l)+4-lineHeight*(len(beside)-1)/2, class, anchors[1+out], beside...)
	if l.site >= 0 {
		p.message(l, x, out)
	} else if l.star {
		p.cross(x, y, l.act == crashes)
	}
}

// message draws a command with its reply, or a message of a server.
func (p *picture) message(l *line, x, out int) {
	y, server := p.y(l), p.servers[l.site]
	middle := (x + server) / 2
	switch {
	case l.of == l:
		p.arrow("answer", server, y-8, x, y)
		p.command(l, x, out)
	case l.star && l.act != loses && l.act != breaks && l.act != refuses:
		p.cross(x, y, l.act == crashes)
	case l.star && l.of != nil && slices.Contains(p.lines, l.of):
		p.arrow("answer odd", server, p.y(l.of)+4, middle, y)
		p.cross(middle, y, true)
	case l.star && l.act == refuses:
		p.arrow("odd", x, y, server, y)
	case l.star:
		p.arrow("odd", x, y, middle, y)
		p.cross(middle, y, true)
	default:
		p.arrow("", x, y, server, y)
		p.command(l, x, out)
		if l.reply != "" {
			p.text(server+12*out, y+16, "soft", anchors[1+out], l.reply)
		}
		if l.heard > 0 {
			p.arrow("answer", server, y+4, x, p.atStamp(l))
		}
	}
}

// command writes a command above its arrow, near its client.
func (p *picture) command(l *line, x, out int) {
	text := wrapped(l.text, commandWide/7)
	p.text(x-14*out, p.y(l)-5-lineHeight*(len(text)-1), "", anchors[1-out], text...)
}

// atStamp returns the position at which the reply to a command arrives.
func (p *picture) atStamp(l *line) int {
	next := slices.IndexFunc(p.lines, func(later *line) bool { return later.at > l.heard })
	if next < 0 {
		next = len(p.lines) - 1
	}
	if p.lines[next-1] == l {
		return p.told(l)
	}
	return p.rows[next] - 8
}

func (p *picture) arrow(class string, x1, y1, x2, y2 int) {
	back := 7
	if x2 > x1 {
		back = -7
	}
	fmt.Fprintf(p, `<path class="%s" d="M%d %dL%d %d"/>`+
		`<path class="%[1]s tip" d="M%[6]d %[7]dL%[4]d %[5]dL%[6]d %[8]d"/>`+"\n",
		class, x1, y1, x2, y2, x2+back, y2-4, y2+4)
}

// cross marks a deviation: with a cross if something ends there, else with a ring.
func (p *picture) cross(x, y int, ends bool) {
	if ends {
		fmt.Fprintf(p, `<path class="odd tip" d="M%d %dl12 12m-12 0l12-12"/>`+"\n", x-6, y-6)
	} else {
		fmt.Fprintf(p, `<path class="odd tip" d="M%d %da6 6 0 1 0 12 0a6 6 0 1 0-12 0"/>`+"\n", x-6, y)
	}
}

// text writes lines of text; the first is at the given place.
func (p *picture) text(x, y int, class, anchor string, lines ...string) {
	for i, line := range lines {
		fmt.Fprintf(p, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", class, x, y+i*lineHeight,
			anchor, html.EscapeString(line))
	}
}

// anchors are the alignments of a text: left of its place, centred, right of it.
var anchors = [...]string{"end", "middle", "start"}

// wrapped breaks a text into lines of at most this number of characters.
func wrapped(text string, most int) (lines []string) {
	for _, word := range strings.Fields(text) {
		for len(word) > most {
			lines, word = append(lines, word[:most]), word[most:]
		}
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= most {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
