package report

import (
	"fmt"
	"html/template"
	"io"
)

// WriteLive writes the page of a job that goes on. Its script reads server-sent events from "events" beside the page, and asks for
// nothing else.
func WriteLive(w io.Writer) error {
	style, err := joined("assets/uplot.min.css", "assets/report.css")
	if err != nil {
		return err
	}
	script, err := joined("assets/uplot.LICENSE", "assets/uplot.min.js", "assets/report.js", "assets/charts.js", "assets/live.js", "assets/strip.js")
	if err != nil {
		return err
	}
	t, err := template.ParseFS(assets, "assets/live.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(w, &page{Style: template.CSS(style), Script: template.JS(script), Policy: fmt.Sprintf(
		"default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'",
		digest(script), digest(style))})
}
