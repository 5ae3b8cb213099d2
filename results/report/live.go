package report

import (
	"io"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// WriteLive writes the page of a job in progress. The page's script only reads server-sent events, from the address
// "events" next to the page.
func WriteLive(w io.Writer) error {
	p := newPage("connect-src 'self'; ", "assets/live.js", "assets/strip.js")
	return webpage(p.Policy, "Hammerlock", p.Style, top("live", theme()), g.Raw(read("assets/live.html")),
		h.Script(g.Raw(p.Script))).Render(w)
}
