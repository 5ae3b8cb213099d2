package results

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hammerlock/history"
)

// ReportFile is the report of a saved run.
const ReportFile = "report.html"

//go:embed assets
var assets embed.FS

// SaveReport writes the report of a saved run into its directory.
func SaveReport(dir string) error {
	return WriteReportFile(filepath.Join(dir, ReportFile), []string{dir})
}

// WriteReportFile writes a report of saved runs to a file, aside at first, so that there is a whole one or none.
func WriteReportFile(path string, dirs []string) (err error) {
	aside := path + unfinished
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the report %s: %w", path, errors.Join(err, removeIfThere(aside)))
		}
	}()
	file, err := os.Create(aside)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(file)
	if err := errors.Join(WriteReport(buf, dirs), buf.Flush(), file.Close()); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteReport writes one page about saved runs, by their directories. The page needs nothing but itself: no
// network, and no script for its tables.
func WriteReport(w io.Writer, dirs []string) error {
	var runs []reported
	for _, dir := range dirs {
		r, err := readReported(dir)
		if err != nil {
			return err
		}
		runs = append(runs, *r)
	}
	return writePage(w, runs)
}

// reported is a saved run with all that its report shows.
type reported struct {
	*Run
	series *series
	strip  *ownership
	notes  map[int64]string // what the faults did, by number
	why    string           // there is no strip
}

func readReported(dir string) (*reported, error) {
	run, err := ReadRun(dir)
	if err != nil {
		return nil, err
	}
	r := &reported{Run: run, notes: map[int64]string{}}
	if r.series, err = readSeries(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, HistoryFile)
	if _, err := os.Stat(path); err != nil {
		r.why = "This run kept no history: bench keeps sums, verify keeps every operation."
		return r, nil
	}
	return r, r.readHistory(path)
}

// readHistory makes the strip, and takes the words of the faults on the way.
func (r *reported) readHistory(path string) (err error) {
	faults := map[history.ID]int64{}
	var h *history.History
	source := func(each func(*history.Op)) (err error) {
		h, err = scan(path, func(op *history.Op) {
			if op.Kind == history.Fault {
				faults[op.ID] = op.Value
			}
			each(op)
		})
		return err
	}
	if r.strip, err = buildStrip(source, r.Run); err != nil {
		return err
	}
	r.strip.Excludes = h.Claims.Excludes
	for id, text := range h.Notes {
		if fault, ok := faults[id]; ok {
			r.notes[fault] = text
		}
	}
	return nil
}

func scan(path string, each func(*history.Op)) (*history.History, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return history.Scan(file, each)
}

// page is what the template sees.
type page struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Data   string
	Runs   []runView
	Banner bannerView
	Tables []tableView // that compare the runs
}

func writePage(w io.Writer, runs []reported) error {
	p := page{Title: "Hammerlock", Banner: banner(runs)}
	style, err := joined("assets/uplot.min.css", "assets/report.css")
	if err != nil {
		return err
	}
	script, err := joined("assets/uplot.LICENSE", "assets/uplot.min.js", "assets/report.js", "assets/charts.js", "assets/strip.js")
	if err != nil {
		return err
	}
	p.Style, p.Script = template.CSS(style), template.JS(script)
	p.Policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		digest(script), digest(style))
	var b pack
	doc := document(runs, &b)
	if p.Data, err = b.text(doc); err != nil {
		return err
	}
	for i := range runs {
		p.Runs = append(p.Runs, view(&runs[i], i))
	}
	if len(runs) > 1 {
		p.Tables = compareTables(runs)
	}
	t, err := template.ParseFS(assets, "assets/report.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(w, &p)
}

// joined puts texts together; a licence becomes a comment.
func joined(names ...string) (string, error) {
	var b strings.Builder
	b.WriteString("\n")
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(name, "LICENSE") {
			fmt.Fprintf(&b, "/*!\n%s*/\n", text)
			continue
		}
		b.Write(text)
		b.WriteString("\n")
	}
	return b.String(), nil
}

// digest names a text for a content security policy.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
