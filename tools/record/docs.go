package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/cli"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// report is a bug report about a release that was published elsewhere, and whether our scenarios caught the bug.
type report struct {
	Library  string `json:"library"`
	Version  string `json:"version"`
	Report   string `json:"report"` // where it was published
	What     string `json:"what"`
	Topology string `json:"topology,omitempty"` // on this topology, Scenario caught it; empty = not caught
	Scenario string `json:"scenario,omitempty"`
	Why      string `json:"why,omitempty"` // why it was not caught, or a remark
}

// judged is a release and its verdicts; said is nil if it was not judged.
type judged struct {
	job
	said *results.Released
}

// page is the page about a library; the newest release comes first.
type page struct {
	*library
	releases []judged
}

// documents makes the pages of docs/record from the saved runs. The result maps paths to texts.
func documents(all []library) (map[string]string, error) {
	var pages []page
	for i := range all {
		p := page{library: &all[i]}
		for k := range slices.Backward(p.Releases) {
			j := judged{job: job{p.library, &p.Releases[k]}}
			if said, err := read[*results.Released](j.file()); err == nil {
				j.said = said
			} else if !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			p.releases = append(p.releases, j)
		}
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b page) int { return cmp.Compare(a.Name, b.Name) })
	reports, err := read[[]report](reportsFile)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for i := range pages {
		notes, err := os.ReadFile(filepath.Join("record/notes", pages[i].Name+".txt"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		files[filepath.Join("docs/record", pages[i].Name+".md")] = pages[i].text(string(notes), reports)
	}
	track, err := trackRecord(pages, reports)
	head, errHead := os.ReadFile("record/notes/README.txt")
	files["docs/record/README.md"] = strings.TrimSpace(string(head)) + "\n\n" + index(pages) + readings(pages) + track
	return files, errors.Join(err, errHead)
}

func writeDocs(all []library) error {
	files, err := documents(all)
	if err != nil {
		return err
	}
	errs := []error{os.MkdirAll("docs/record", 0o755)}
	for file, text := range files {
		errs = append(errs, os.WriteFile(file, []byte(text), 0o644))
	}
	return errors.Join(errs...)
}

// columns lists the claims that have a column in the tables: those that a checker judges and a driver can make, and
// the claim "serves".
func columns() (names []string) {
	for _, c := range history.AllClaims {
		// Few drivers make these claims, so they have no column.
		few := slices.Contains([]string{"fences", "ordered", "reentrant", "sets", "crosses", "once"}, c.Name)
		if len(c.Judges) > 0 && (c.Driver != "" || c.Name == "serves") && !few {
			names = append(names, c.Name)
		}
	}
	return names
}

func tableHead(names ...string) string {
	return "| " + strings.Join(names, " | ") + " |\n|" + strings.Repeat("---|", len(names)) + "\n"
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

var words = map[checker.Status]string{checker.Pass: "holds", checker.Fail: "**no**", checker.Inconclusive: "undecided",
	checker.NotJudged: "-"}

// cell sums up the verdicts on a claim over all topologies. If the claim fails on any topology, the cell only says
// so. Otherwise it lists the different verdicts.
func cell(on []results.ReleasedOn, claim string) string {
	var said []string
	worst := ""
	for i := range on {
		for _, c := range on[i].Claims {
			if c.Claim != claim {
				continue
			}
			said = append(said, words[c.Status])
			if c.Status == checker.Fail {
				worst = words[c.Status]
			}
		}
	}
	if said = slices.Compact(said); worst != "" || len(said) == 1 {
		return cmp.Or(worst, strings.Join(said, ""))
	}
	if len(on) > 0 && len(said) == 0 {
		return words[checker.NotJudged]
	}
	return cmp.Or(strings.Join(said, ", "), "not asked")
}

func index(pages []page) string {
	var b strings.Builder
	releases, libraries := 0, 0
	b.WriteString(tableHead(append(append([]string{"library", "language", "newest judged"}, columns()...), "releases",
		"day")...))
	for i := range pages {
		p := &pages[i]
		n := len(slices.DeleteFunc(slices.Clone(p.releases), func(j judged) bool { return j.said == nil }))
		releases += n
		newest := slices.IndexFunc(p.releases, func(j judged) bool { return j.said != nil })
		cells := []string{fmt.Sprintf("[%s](%s.md)", p.Name, p.Name), p.Language}
		if newest < 0 {
			b.WriteString(row(append(cells, "not asked")...))
			continue
		}
		libraries++
		said := p.releases[newest].said
		version := said.Version
		if slices.ContainsFunc(said.On, func(on results.ReleasedOn) bool { return on.Code == cli.Broken }) {
			version += ", broke off"
		}
		cells = append(cells, version)
		for _, claim := range columns() {
			cells = append(cells, cell(said.On, claim))
		}
		b.WriteString(row(append(cells, fmt.Sprint(n), said.Day)...))
	}
	fmt.Fprintf(&b, "\n%s of %s.\n", human.Quantity(int64(releases), "release"),
		strings.Replace(human.Quantity(int64(libraries), "library"), "librarys", "libraries", 1))
	return b.String()
}

const (
	ours    = "ours"
	notRead = "**not read**"
)

// readings returns a table with the failures of each library's newest judged release, and their causes in the code.
func readings(pages []page) string {
	var b strings.Builder
	b.WriteString("\n## Each failure of a newest release, read in its code\n\n" +
		fold("*Confirmed*: the code does so. *Known*: reported before, by its users or here. "+
			"*Ours*: the driver or the judge was wrong, and is mended. Scenarios are those of the run that is kept, "+
			"and of others on the same day.") +
		"\n\n" + tableHead("release", "scenario", "verdict", "what happens", "code"))
	for i := range pages {
		for _, j := range pages[i].releases {
			if j.said == nil {
				continue
			}
			release := fmt.Sprintf("[%s](%s.md) %s", j.Name, j.Name, j.Version)
			for _, r := range j.Read {
				b.WriteString(row(release, "`"+strings.Join(r.Scenarios, "`, `")+"`", r.Verdict, r.What, r.Code))
			}
			for _, scenario := range j.unread() {
				b.WriteString(row(release, "`"+scenario+"`", notRead, "-", "-"))
			}
			break
		}
	}
	return b.String()
}

// unread lists the failed scenarios of a release whose cause is unknown. A cause with the verdict "ours" does not
// count as known, because that bug is fixed.
func (j *judged) unread() (scenarios []string) {
	for i := range j.said.On {
		for _, t := range j.said.On[i].Scenarios {
			known := slices.ContainsFunc(j.Read, func(r reading) bool {
				return slices.Contains(r.Scenarios, t.Scenario) && r.Verdict != ours
			})
			if t.Status == checker.Fail && !known {
				scenarios = append(scenarios, t.Scenario)
			}
		}
	}
	return scenarios
}

// trackRecord returns the table of reported bugs. If a bug was caught, its row has the verdict from the saved run.
func trackRecord(pages []page, reports []report) (string, error) {
	var b strings.Builder
	caught := 0
	b.WriteString("\n## Reported bugs of these releases\n\n" +
		tableHead("release", "report", "what goes wrong", "caught as", "after", "to know"))
	for _, r := range reports {
		as, after := "**not caught**", "-"
		if r.Scenario != "" {
			t := find(pages, &r)
			if t == nil || t.Status != checker.Fail {
				return "", fmt.Errorf("%s: %s@%s: no failure of %s on %s is kept", reportsFile, r.Library, r.Version,
					r.Scenario, r.Topology)
			}
			caught++
			as, after = fmt.Sprintf("`%s`: %s %s", r.Scenario, t.Checker, t.Cause),
				human.Duration(time.Duration(t.After))
		}
		b.WriteString(row(r.Library+" "+r.Version, r.Report, r.What, as, after, r.Why))
	}
	fmt.Fprintf(&b, "\n%d of %d were caught by the default.\n", caught, len(reports))
	return b.String(), nil
}

func find(pages []page, r *report) *results.Tried {
	for i := range pages {
		for _, j := range pages[i].releases {
			if j.Name != r.Library || j.Version != r.Version || j.said == nil {
				continue
			}
			for o := range j.said.On {
				at := slices.IndexFunc(j.said.On[o].Scenarios, func(t results.Tried) bool {
					return t.Scenario == r.Scenario
				})
				if j.said.On[o].Topology == r.Topology && at >= 0 {
					return &j.said.On[o].Scenarios[at]
				}
			}
		}
	}
	return nil
}
