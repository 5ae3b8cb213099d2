// Package report makes an HTML page about saved runs: tables, charts, and pictures of who held the lock when. The
// page is a single file and needs no network. Its tables also work without scripts. The package takes the verdicts
// from the files and does not judge anything.
package report

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"hammerlock/results"
)

// File is the name of the page in the directory of a saved run.
const File = "report.html"

// unfinished is the suffix of the page's file until the page is complete.
const unfinished = ".partial"

//go:embed assets
var assets embed.FS

// Write writes a page about the saved runs in the directories dirs, and about the results in unsaved. A new page
// replaces an old one at path only when it is complete. If files beside the records are damaged, the page is written
// without them, and the error is an ErrDamaged.
func Write(path string, dirs []string, unsaved Unsaved) error {
	damaged, err := write(path, dirs, unsaved)
	return errors.Join(damaged, err)
}

func write(path string, dirs []string, unsaved Unsaved) (damaged, err error) {
	aside := path + unfinished
	defer func() {
		if err == nil {
			return
		}
		if left := os.Remove(aside); !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
		err = fmt.Errorf("write the report %s: %w", path, err)
	}()
	file, err := os.Create(aside)
	if err != nil {
		return nil, err
	}
	buf := bufio.NewWriter(file)
	damaged, err = writeRuns(buf, dirs, unsaved)
	if err := errors.Join(err, buf.Flush(), file.Close()); err != nil {
		return nil, err
	}
	return damaged, os.Rename(aside, path)
}

// writeRuns writes the page, and says what is missing because it is damaged. It leaves out runs that were repeated, if
// the page has the repetition.
func writeRuns(w io.Writer, dirs []string, unsaved Unsaved) (damaged, err error) {
	runs := unsaved.runs()
	for _, dir := range dirs {
		r, err := readSaved(dir)
		if err != nil {
			return nil, err
		}
		damaged = errors.Join(damaged, r.damaged)
		runs = append(runs, *r)
	}
	all := runs
	runs = slices.DeleteFunc(slices.Clone(all), func(r saved) bool {
		return slices.ContainsFunc(all, func(o saved) bool { return slices.Contains(o.Earlier, r.Name) })
	})
	return damaged, writePage(w, runs, unsaved.NotRun)
}

type page struct {
	Policy string
	Style  string
	Script string
	Data   string
	Runs   []runView
	Banner bannerView
	Matrix matrixView // for several runs
	Loads  []loadView // groups of runs with the same load
	Common string     // the topology, lock and scenario that all runs share
	Fold   bool       // the page has too many runs to show each of them unfolded
}

// unfolded is the largest number of runs that a page shows in full at once. If there are more, a click opens a run.
const unfolded = 3

func writePage(w io.Writer, runs []saved, not []results.NotRun) error {
	names, common := titles(runs)
	p := newPage("", "assets/strip.js")
	if len(runs) > 1 {
		p.Matrix, p.Loads = matrix(runs, names, not), loads(runs, names)
	}
	p.Banner, p.Common, p.Fold = banner(runs), common, len(runs) > unfolded
	var b pack
	var err error
	if p.Data, err = b.text(document(runs, names, &b)); err != nil {
		return err
	}
	for i := range runs {
		p.Runs = append(p.Runs, view(&runs[i], i, names[i]))
	}
	return p.node().Render(w)
}

// newPage makes a page with its style and scripts. The content security policy forbids all network requests except
// those in the text allowed.
func newPage(allowed string, scripts ...string) *page {
	style := joined("assets/uplot.min.css", "assets/report.css")
	script := joined(append([]string{"assets/uplot.LICENSE", "assets/uplot.min.js", "assets/report.js",
		"assets/charts.js"}, scripts...)...)
	return &page{Style: style, Script: script, Policy: fmt.Sprintf(
		"default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; %sbase-uri 'none'; form-action 'none'",
		digest(script), digest(style), allowed)}
}

// joined returns the assets one after another. A licence becomes a comment.
func joined(names ...string) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, name := range names {
		if strings.HasSuffix(name, "LICENSE") {
			fmt.Fprintf(&b, "/*!\n%s*/\n", read(name))
			continue
		}
		b.WriteString(read(name) + "\n")
	}
	return b.String()
}

func read(asset string) string {
	text, err := assets.ReadFile(asset)
	if err != nil {
		panic("report: " + err.Error()) // impossible: the program contains the asset
	}
	return string(text)
}

// digest returns the SHA-256 of a text in the form of a content security policy.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
