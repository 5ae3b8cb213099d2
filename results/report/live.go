package report

import (
	"html/template"
	"io"
)

// WriteLive writes the page of a job that goes on. Its script reads server-sent events from "events" beside the page, and asks for
// nothing else.
func WriteLive(w io.Writer) error {
	p := newPage("connect-src 'self'; ", "assets/live.js", "assets/strip.js")
	return template.Must(template.ParseFS(assets, "assets/live.tmpl")).Execute(w, p)
}
