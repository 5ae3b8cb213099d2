package compare

import (
	"io"
	"strings"

	"hammerlock/internal/human"
)

// Mark is the first line of the comment on a pull request. A later CI run finds its old comment by this line and
// replaces it.
const Mark = "<!-- hammerlock comparison -->"

func (v *View) WriteMarkdown(w io.Writer) error {
	p := &human.Printer{W: w}
	p.Line("%s\n### %s\n", Mark, inline(v.Title))
	if v.Failed != "" {
		p.Line("**✕ SAFETY FAIL** %s\n", inline(v.Failed))
	}
	for _, s := range v.Summary {
		p.Line("* %s", inline(s))
	}
	for i := range v.Tables {
		v.Tables[i].markdown(p, v.Sides)
	}
	if len(v.Gates) > 0 {
		p.Line("\n| gate | | why |\n|---|---|---|")
		for _, g := range v.Gates {
			p.Line("| %s | %s | %s |", inline(strings.TrimSpace(strings.TrimSpace(g.Topology+" "+g.Lock)+" "+g.Gate)),
				strings.ToUpper(string(g.Status)), inline(g.Summary))
		}
	}
	p.Line("\n<details><summary>How this was measured</summary>\n")
	for _, note := range append([]string{v.Method}, v.Notes...) {
		p.Line("* %s", inline(note))
	}
	p.Line("")
	if v.Command != "" {
		p.Line("    %s\n", v.Command)
	}
	p.Line("</details>")
	return p.Err
}

// markdown writes a table with the values of the first side in a column. It has a row for each metric and each other
// side.
func (t *Table) markdown(p *human.Printer, sides []string) {
	p.Line("")
	if t.Name != "" {
		p.Line("**%s**\n", inline(t.Name))
	}
	second := "the others"
	if len(sides) == 2 {
		second = sides[1]
	}
	p.Line("| number | %s | %s | change | interval | noise floor | verdict |\n|---|--:|--:|--:|--:|--:|---|",
		inline(sides[0]), inline(second))
	for i := range t.Rows {
		r := &t.Rows[i]
		for k := range r.Cells[1:] {
			c := &r.Cells[k+1]
			value := c.Value
			if len(sides) > 2 {
				value = inline(c.Side) + ": " + value
			}
			p.Line("| %s | %s | %s | %s | %s | %s | %s |", r.Metric, r.Cells[0].Value, value, c.ChangeText, c.Interval,
				c.Floored,
				strings.TrimSpace(c.Sign+" "+c.Verdict))
		}
	}
}

// inline escapes Markdown characters, so that a text can stand in a table cell.
func inline(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*", "_", "\\_", "`", "'", "[",
		"\\[").Replace(text)
}
