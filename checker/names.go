package checker

import (
	"regexp"
	"strconv"
)

var pageNumber = regexp.MustCompile(`\bpage (\d+)\b`)

// namePages adds the name of a page where a summary or a story first mentions the page, if the name is known.
func (c *Case) namePages(v *Verdict) {
	if len(c.Names) == 0 {
		return
	}
	v.Summary = c.named(v.Summary, map[int]bool{})
	told := map[int]bool{}
	for i, line := range v.Story {
		v.Story[i] = c.named(line, told)
	}
}

// named adds to a text the names of the pages that are not in told yet, and adds these pages to told.
func (c *Case) named(text string, told map[int]bool) string {
	return pageNumber.ReplaceAllStringFunc(text, func(page string) string {
		n, err := strconv.Atoi(page[len("page "):])
		if err != nil || n >= len(c.Names) || told[n] {
			return page
		}
		told[n] = true
		return page + " (" + c.Names[n] + ")"
	})
}
