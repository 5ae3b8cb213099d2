package report

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// webpage makes a whole page. It must not change the style or the scripts, because the page's content security
// policy has their digests.
func webpage(policy, title, style string, body ...g.Node) g.Node {
	meta := func(name, content string) g.Node { return h.Meta(h.Name(name), h.Content(content)) }
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(h.Meta(h.Charset("utf-8")), h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(policy)),
			meta("viewport", "width=device-width, initial-scale=1"), meta("referrer", "no-referrer"),
			h.TitleEl(g.Text(title)), h.Link(h.Rel("icon"), h.Href("data:,")), h.StyleEl(g.Raw(style))),
		h.Body(body...)))
}

const logo = `<svg viewBox="0 0 24 24" aria-hidden="true">` +
	`<path d="M6 11V8a6 6 0 0 1 12 0v3h1v11H5V11zm2.5 0h7V8a3.5 3.5 0 0 0-7 0zM12 14.5v4"/></svg>`

// unread hides an element from screen readers, for signs that a word follows. unseen hides an element until a script
// shows it.
var unread, unseen = g.Attr("aria-hidden", "true"), g.Attr("hidden")

func top(kind string, more ...g.Node) g.Node {
	return h.Header(h.Class("top"), h.Div(h.Class("name"), g.Raw(logo), g.Text("Hammerlock"), h.Span(g.Text(kind))),
		g.Group(more))
}

func theme() g.Node { return h.Button(h.Type("button"), h.ID("theme"), unseen, g.Text("Dark")) }

func seal(s state, more ...g.Node) g.Node {
	return h.Section(h.Class("banner "+s.Class), h.ID("verdict"), h.Div(h.Class("seal"), unread, g.Text(s.Sign)),
		h.Div(h.H1(g.Text(s.Word)), g.Group(more)))
}

// text makes an element with the text words; nil = the text is empty.
func text(element func(...g.Node) g.Node, class, words string) g.Node {
	switch {
	case words == "":
		return nil
	case class == "":
		return element(g.Text(words))
	}
	return element(h.Class(class), g.Text(words))
}

func texts(element func(...g.Node) g.Node, class string, all []string) g.Node {
	return g.Map(all, func(words string) g.Node { return text(element, class, words) })
}

func (s state) node() g.Node {
	return h.Span(h.Class("state "+s.Class), h.Span(h.Class("sign"), unread, g.Text(s.Sign)),
		text(h.Span, "word", s.Word))
}

func (t *tableView) node() g.Node {
	if len(t.Rows) == 0 {
		return text(h.P, "note", t.Note)
	}
	var head g.Node
	if len(t.Head) > 0 {
		head = h.THead(h.Tr(g.Map(t.Head, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) })))
	}
	return g.Group{h.Div(h.Class("scroll"), h.Table(h.Class(t.Class), head,
		h.TBody(g.Map(t.Rows, func(row []cellView) g.Node { return h.Tr(g.Map(row, cellView.node)) })))),
		text(h.P, "note", t.Note)}
}

func (c cellView) node() g.Node {
	words, all := g.Text(c.Text), g.Group{}
	if c.Bar > 0 {
		all = append(all,
			g.Rawf(`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">`+
				`<rect width="%d" height="8"/></svg>`, c.Bar))
	}
	if c.Link != "" {
		words = h.A(h.Href("#"+c.Link), words)
	}
	if all = append(all, words); c.State != nil {
		all = append(all, g.Text(" "), c.State.node())
	}
	return h.Td(all)
}

// repeat shows the command that repeats a run; nil = there is no command.
func repeat(command string, more ...g.Node) g.Node {
	if command == "" {
		return nil
	}
	return h.Div(h.Class("command"), text(h.Span, "label", "Repeat"), h.Code(g.Text(command)), g.Group(more))
}

func copied(command string) g.Node {
	return repeat(command, h.Button(h.Type("button"), h.Data("copy", command), unseen, g.Text("Copy")))
}

func heading(class, sign, words string) g.Node {
	return h.H4(h.Span(h.Class("sign "+class), unread, g.Text(sign)), g.Text(words))
}

func (s storyView) node() g.Node {
	all := g.Group{heading("fail", "✕", s.Title), text(h.P, "", s.Means)}
	if len(s.In) > 0 {
		in := g.Group{g.Text("In ")}
		for i, run := range s.In {
			if i > 0 {
				in = append(in, g.Text(", "))
			}
			in = append(in, h.A(h.Href("#"+run.Link), g.Text(run.Text)))
		}
		all = append(all, h.P(h.Class("note"), in))
	}
	if len(s.Lines) > 0 {
		all = append(all, h.Ol(texts(h.Li, "", s.Lines)))
	}
	if s.Remedy != "" {
		all = append(all, h.P(h.Class("remedy"), h.B(g.Text("What to do")), g.Text(" "+s.Remedy)))
	}
	if all = append(all, s.Ops.node()); s.From != "" {
		all = append(all, h.Button(h.Type("button"), h.Data("from", s.From), h.Data("to", s.To), unseen,
			g.Text("Show in the ownership strip")))
	}
	return h.Div(h.Class("story"), all, copied(s.Command))
}

func (m *matrixView) node() g.Node {
	var all g.Group
	if len(m.Table.Rows) > 0 {
		all = append(all, h.Section(h.ID("matrix"), text(h.H2, "", "Scenarios and properties"),
			text(h.P, "note",
				"✓ pass · ✕ fail · ? undecided (INCONCLUSIVE) · – not judged: the lock does not claim it · empty: "+
					"not run"),
			m.Table.node(), m.NotRun.folded(fmt.Sprintf("%d scenarios do not apply, or could not be run",
				len(m.NotRun.Rows)))))
	}
	if len(m.Failures)+len(m.Open) == 0 {
		return all
	}
	failures := g.Group{text(h.H2, "", "What did not pass"), g.Map(m.Failures, storyView.node)}
	if len(m.Open) > 0 {
		failures = append(failures, h.Div(h.Class("story"), heading("unsure", "?", "Undecided"),
			h.Ul(texts(h.Li, "", m.Open))))
	}
	return append(all, h.Section(h.ID("failures"), failures))
}

// folded returns the table below a summary that opens it by a click; nil = the table has no rows.
func (t *tableView) folded(summary string) g.Node {
	if len(t.Rows) == 0 {
		return nil
	}
	return h.Details(text(h.Summary, "", summary), t.node())
}

// chart makes a figure in which a script draws. If key is true, the caption begins with the scale of shades.
func chart(kind, title, more string, key bool, of ...g.Node) g.Node {
	caption := g.Group{h.B(g.Text(title)), g.Text(" ")}
	if key {
		caption = append(caption, h.Span(h.Class("key"), unread), g.Text(" "))
	}
	return h.Figure(h.FigCaption(caption, g.Text(more)), h.Div(h.Class("chart"), h.Data("chart", kind), g.Group(of)))
}

// node makes the page about saved runs.
func (p *page) node() g.Node {
	title, notes := strconv.Itoa(len(p.Runs))+" runs", texts(h.P, "minor", p.Banner.Notes)
	if len(p.Runs) == 1 {
		title, notes = p.Runs[0].Title, p.Runs[0].alone() // a single run has the same notes, and more
	}
	return webpage(p.Policy, p.Banner.State.Word+" · "+title+" · Hammerlock", p.Style, top("report", theme()),
		h.Main(seal(p.Banner.State, h.P(g.Text(p.Banner.Text)), notes),
			p.Matrix.node(), p.compared(),
			g.Map(p.Runs, func(r runView) g.Node {
				article := h.Article(h.ID(r.ID), h.Data("run", r.ID), g.Iff(len(p.Runs) > 1, r.head), r.node())
				if !p.Fold {
					return article
				}
				return h.Details(h.Class("fold"), h.Summary(g.Text(r.Title+" "), r.Banner.State.node()), article)
			})),
		h.NoScript(text(h.P, "note center", "Charts need JavaScript; every table above is complete without it.")),
		h.Script(h.Type("text/plain"), h.ID("data"), g.Text(p.Data)), h.Script(g.Raw(p.Script)))
}

// compared makes a section for each load, which compares its runs. The properties that all runs share come first.
func (p *page) compared() g.Node {
	common := p.Common
	if common != "" {
		common = "All runs: " + common
	}
	return g.Map(p.Loads, func(v loadView) g.Node {
		id, title := "compare", "Comparison"
		if v.Load != "" {
			id, title = "compare"+strconv.Itoa(v.Number), "Comparison: "+v.Title
		}
		var charts g.Group
		draw := func(has bool, kind, title, more string) {
			if has {
				charts = append(charts, chart(kind, title, more, false, h.Data("load", strconv.Itoa(v.Number))))
			}
		}
		draw(v.Cost, "pareto", "Cost against response p99",
			"down and left is better; the line joins runs that no other safe run beats in both")
		draw(v.Response, "spectra", "Response by percentile", "counted visits of each run")
		return h.Section(h.ID(id), text(h.H2, "", title), text(h.P, "note", v.Load), text(h.P, "note", common),
			v.Table.node(),
			g.If(len(charts) > 0, h.Div(h.Class("grid"), charts)))
	})
}
