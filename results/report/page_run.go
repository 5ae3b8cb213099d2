package report

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// alone makes the top of a page that has only this run.
func (r *runView) alone() g.Node {
	all := g.Group{texts(h.P, "minor", r.Banner.Notes)}
	if r.Explored {
		return append(all, text(h.P, "minor", r.Title), copied(r.Command))
	}
	return append(all, text(h.P, "minor", r.Title+" · "+r.Load),
		h.P(h.Class("minor"), g.Text("Generator "), r.Generator.node(), g.Text(" "+r.Health.Note)), copied(r.Command))
}

// head makes the heading and the verdict of a run among several.
func (r *runView) head() g.Node {
	all := g.Group{h.H2(g.Text(r.Title+" "), r.Banner.State.node()), h.P(g.Text(r.Banner.Text)),
		texts(h.P, "minor", r.Banner.Notes)}
	if !r.Explored {
		all = append(all, h.P(h.Class("minor"), g.Text(r.Load+" · generator "), r.Generator.node()))
	}
	return h.Div(h.Class("runhead "+r.Banner.State.Class), all, copied(r.Command))
}

func part(title string, body ...g.Node) g.Node {
	return h.Section(text(h.H3, "", title), g.Group(body))
}

func (r *runView) node() g.Node {
	var all g.Group
	if !r.Explored {
		all = append(all, h.Div(h.Class("tiles"), g.Map(r.Tiles, func(t tileView) g.Node {
			return h.Div(h.Span(g.Text(t.Name)), h.B(g.Text(t.Value)), h.Small(g.Text(t.More)))
		})))
	}
	all = append(all, part("Verdicts", r.Verdicts.node(), text(h.P, "note", r.Certified),
		g.Map(r.Stories, storyView.node)))
	if r.Picture != "" {
		all = append(all, part(r.Shows, h.Img(h.Src(r.Picture), h.Alt("the verdicts above say the same in words"))))
	}
	if r.Strip {
		all = append(all, part("Who held the lock", text(h.P, "note", r.StripText),
			h.Div(h.Class("strip"), h.Data("chart", "strip")),
			r.Overlaps.folded("Overlaps as a table")))
	}
	if !r.Explored {
		all = append(all, r.measured())
	}
	if r.Started == "" {
		return all
	}
	return append(all, h.Div(h.Class("pair"), part("Configuration", r.Config.node()),
		part("Environment", r.Env.node(), text(h.P, "note", "Started "+r.Started))))
}

func (r *runView) measured() g.Node {
	var all g.Group
	if len(r.Phases.Rows) > 0 {
		all = append(all, part("Phases", r.Phases.node()))
	}
	pictures := text(h.P, "note", "This run has no latency log, so there is nothing to draw.")
	if r.Series {
		all = append(all, part("Over time", h.Div(h.Class("grid"),
			chart("rate", "Throughput",
				"counted visits a second; hatched: a fault in force, shaded: until all was healthy again, dotted: a "+
					"change of roles, "+
					"band: no worker was served", false),
			chart("latency", "Latency each second",
				"solid: response, dashed: acquire; the maximum is always known, a percentile only where five visits "+
					"lie "+
					"beyond it", false))))
		pictures = h.Div(h.Class("grid"),
			chart("spectrum", "By percentile", "counted visits; from second to second histograms with two digits",
				false),
			chart("handoff", "Hand-off by percentile", "from a release to the grant of another worker that waited",
				false),
			chart("heat-response", "Response heat map", "few to many visits, logarithmic", true),
			chart("heat-acquire", "Acquire heat map", "few to many grants, logarithmic", true))
	}
	all = append(all, part("Latency", r.Latency.node(), pictures),
		part("Fairness", text(h.P, "note", r.FairnessText), r.shares()),
		h.Div(h.Class("pair"), part("Cost and errors", r.Cost.node()),
			h.Section(h.H3(g.Text("Load generator "), r.Generator.node()), r.Health.node())))
	faults := r.Faults.node()
	if len(r.Faults.Rows) == 0 {
		faults = text(h.P, "note", "No faults were planned.")
	}
	return append(all, part("Fault plan", faults, r.Outages.node(), r.Others.node()))
}

func (r *runView) shares() g.Node {
	if len(r.Fairness.Rows) == 0 {
		return nil
	}
	return g.Group{h.Div(h.Class("grid three"), chart("shares", "Visits by worker", "dashed: the fair share", false),
		chart("lorenz", "Lorenz curve", "dashed: all have as much", false),
		chart("waits", "Longest wait by worker", "", false)),
		r.Fairness.folded("Workers as a table, fewest visits first")}
}
