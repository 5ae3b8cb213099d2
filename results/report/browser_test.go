package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hammerlock/internal/browser"
	"hammerlock/internal/live"
	"hammerlock/results"
)

// artifacts is the directory for pictures of the report, for people to look at.
const artifacts = "../../bin/artifacts"

type tab struct{ *browser.Tab }

func openTab(t *testing.T, chromium context.Context, wide, high int64) tab {
	t.Helper()
	return tab{browser.Open(t, chromium, wide, high)}
}

// address returns the address of a file for a browser.
func address(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + full
}

// quiet fails the test if the browser reported errors, or requested anything but the page.
func (b tab) quiet(t *testing.T) {
	t.Helper()
	b.Quiet(t, func(url string) bool {
		return strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "file://") && strings.HasSuffix(url, ".html")
	})
}

// leave writes a file for people to look at.
func leave(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(artifacts, 0o755),
		os.WriteFile(filepath.Join(artifacts, name), data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// picture saves a picture and returns the number of its colours.
func (b tab) picture(t *testing.T, name, selector string) int {
	t.Helper()
	take := chromedp.FullScreenshot(100)
	if selector != "" {
		take = chromedp.Screenshot(chromedp.CSS(selector))
	}
	shot := browser.Do(t, b.Tab, take)
	leave(t, name+".png", shot)
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	colors := map[[3]uint32]bool{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y += 2 {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x += 2 {
			r, g, bl, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r >> 12, g >> 12, bl >> 12}] = true
		}
	}
	return len(colors)
}

// drawnScript returns the state of every chart: the number of drawn pixels of its canvas.
const drawnScript = `[...document.querySelectorAll("[data-chart]")].map(box => {
	const canvas = box.querySelector("canvas:not(.swatch)");
	let ink = 0;
	if (canvas) {
		const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
		copy.drawImage(canvas, 0, 0);
		const p = copy.getImageData(0, 0, canvas.width, canvas.height).data;
		for (let i = 3; i < p.length; i += 4) if (p[i] > 0) ink++;
	}
	const name = (box.closest("[data-run]") || {id: "all"}).id + " " + box.dataset.chart;
	return {name, state: box.dataset.drawn || "", ink};
})`

type panel struct {
	Name  string
	State string
	Ink   int
}

func (b tab) panels(t *testing.T) []panel {
	t.Helper()
	return browser.JS[[]panel](t, b.Tab, drawnScript)
}

func (b tab) text(t *testing.T, script string) string {
	t.Helper()
	return browser.JS[string](t, b.Tab, script)
}

// inkOf counts the pixels of a theme's colour in the strip.
func (b tab) inkOf(t *testing.T, name string) int {
	t.Helper()
	return b.inkIn(t, "page.strips.run0.canvas", name)
}

// inkIn counts these pixels in any canvas.
func (b tab) inkIn(t *testing.T, canvas, name string) int {
	t.Helper()
	return browser.JS[int](t, b.Tab, fmt.Sprintf(`(() => {
		const c = %s, x = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true});
		x.fillStyle = color(%q); x.fillRect(0, 0, 1, 1);
		const want = x.getImageData(0, 0, 1, 1).data;
		x.clearRect(0, 0, c.width, c.height);
		x.drawImage(c, 0, 0);
		const p = x.getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < p.length; i += 4) {
			const off = Math.abs(p[i] - want[0]) + Math.abs(p[i+1] - want[1]) + Math.abs(p[i+2] - want[2]);
			if (off < 12 && p[i+3] > 250) n++;
		}
		return n;
	})()`, canvas, name))
}

// TestLiveReportInABrowser opens pages in one browser, one after another: a browser draws only the tab in front.
func TestLiveReportInABrowser(t *testing.T) {
	t.Parallel()
	chromium := browser.Start(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"one run": oneRun, "several runs": severalRuns, "without scripts": withoutScripts, "printed": printed,
		"comparison": func(t *testing.T, c context.Context) { comparisonDrawn(t, openTab(t, c, 1280, 900)) },
	} {
		t.Run(name, func(t *testing.T) { test(t, chromium) })
	}
}

func oneRun(t *testing.T, chromium context.Context) {
	dir := crowd{workers: 16, visits: 4000, intrude: 400, seed: 5}.save(t, t.TempDir(), func(r *results.Run) {
		const ms = int64(time.Millisecond)
		r.Phases = []results.Phase{{Name: "warm-up", Kind: "warm-up", Load: "50/s", To: 200 * ms},
			{Name: "calm", Kind: "steady", Load: "90/s", From: 200 * ms, To: 3000 * ms},
			{Name: "rush", Kind: "burst", Load: "300 at once", From: 3000 * ms, To: 9000 * ms}}
	})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1280, 900)
	b.Scheme(t, "light")
	b.Draw(t, address(t, filepath.Join(dir, File)))
	if n := b.inkIn(t, `document.querySelector("[data-chart=rate] canvas")`, "soft"); n < 1500 {
		t.Errorf("%d pixels of the throughput are shaded as those of a phase", n)
	}
	if text := b.text(t, `document.body.innerText`); !strings.Contains(text, "300 at once") {
		t.Error("the load of a phase is missing")
	}
	panels := b.panels(t)
	if len(panels) != 10 {
		t.Errorf("got %d panels, want 10: %v", len(panels), panels)
	}
	for _, p := range panels {
		if p.State != "yes" || p.Ink < 500 {
			t.Errorf("panel %s: state %q, %d pixels drawn", p.Name, p.State, p.Ink)
		}
	}
	if n := b.picture(t, "report-light", ""); n < 20 {
		t.Errorf("the page has %d colours", n)
	}
	b.strip(t)
	b.shaded(t)
	dashes := b.text(t, `[...document.querySelectorAll("[data-chart=latency] .u-marker")].map(
		m => m.style.background.includes("transparent")).join()`)
	if dashes != "false,false,false,false,true,true,true" {
		t.Errorf("swatches of the lines of latency have dashes: %s, want those of the last three", dashes)
	}
	b.Scheme(t, "dark")
	b.Act(t, `page.strips.run0.show(0, 1e18)`)
	if back := b.text(t, `getComputedStyle(document.body).backgroundColor`); back != "rgb(14, 19, 25)" {
		t.Errorf("the dark page is %s", back)
	}
	b.picture(t, "report-dark", "")
	b.Act(t, `document.getElementById("theme").click()`)
	b.narrow(t, "report-narrow")
	b.quiet(t)
}

// narrow shows the page on a phone: it must not be wider.
func (b tab) narrow(t *testing.T, name string) {
	t.Helper()
	b.Size(t, 375, 800)
	wide := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s: the page is %s pixels wide on a screen of 375", name, wide)
		}
	}()
	live.Wait(t, "a page as wide as the screen: charts are drawn again in a frame of their own", func() bool {
		wide = b.text(t, `String(document.documentElement.scrollWidth)`)
		return wide == "375"
	})
	b.picture(t, name, "")
}

// strip zooms from the whole run to a millisecond around a violation, and then to its operations.
func (b tab) strip(t *testing.T) {
	t.Helper()
	if n := b.inkOf(t, "overlap"); n < 20 {
		t.Errorf("the whole run shows its overlaps in %d pixels", n)
	}
	b.Act(t, `page.strips.run0.jump(1, 1e6)`)
	if span := b.text(t, `String(Math.round(page.strips.run0.view[1] - page.strips.run0.view[0]))`); span != "1000000" {
		t.Errorf("the strip shows %s ns, want a millisecond", span)
	}
	if n := b.inkOf(t, "overlap"); n < 100 {
		t.Errorf("a violation zoomed to a millisecond has %d pixels", n)
	}
	detail := b.text(t, `document.querySelector(".detail").innerText`)
	for _, want := range []string{"at the same time", "acquire ok", "release: ok"} {
		if !strings.Contains(detail, want) {
			t.Errorf("the operations of the violation lack %q: %s", want, detail)
		}
	}
	b.picture(t, "report-violation-1ms", "[data-chart=strip]")
	b.Act(t, `page.strips.run0.canvas.focus()`)
	browser.Do(t, b.Tab, chromedp.KeyEvent("0"))
	browser.Do(t, b.Tab, chromedp.KeyEvent("+"))
	if whole := b.text(t,
		`String(Math.round(page.strips.run0.s.end / (page.strips.run0.view[1] - page.strips.run0.view[0])))`); whole !=
		"2" {
		t.Errorf("after the keys 0 and + the strip shows 1/%s of the run, want 1/2", whole)
	}
}

func severalRuns(t *testing.T, chromium context.Context) {
	out := t.TempDir()
	var dirs []string
	for i, c := range []crowd{{8, 2000, 0, 1}, {16, 2000, 200, 2}, {8, 1500, 0, 3}} {
		dirs = append(dirs, c.save(t, out, func(r *results.Run) {
			r.Name, r.Lock = fmt.Sprintf("run-%d", i), []string{"lease", "naive", "redsync"}[i]
		}))
	}
	if err := os.Remove(filepath.Join(dirs[2], results.HistoryFile)); err != nil { // as bench saves it
		t.Fatal(err)
	}
	path := filepath.Join(out, File)
	if err := Write(path, dirs, Unsaved{}); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1280, 900)
	b.Show(t, address(t, path))
	// visible charts are drawn without a request
	browser.Do(t, b.Tab, chromedp.WaitVisible(chromedp.CSS("[data-chart=pareto][data-drawn=yes]")))
	if late := b.text(t, `document.querySelector("#run2 [data-chart=lorenz]").dataset.drawn || "not yet"`); late !=
		"not yet" {
		t.Errorf("what is far out of sight is drawn at once: %s", late)
	}
	b.Draw(t, address(t, path))
	n := 0
	for _, p := range b.panels(t) {
		if p.State == "yes" && p.Ink >= 500 {
			n++
		}
	}
	if want := 2 + 10 + 10 + 9; n != want {
		t.Errorf("%d panels are drawn, want %d: %v", n, want, b.panels(t))
	}
	b.picture(t, "report-compare", "")
	if text := b.text(t, `document.getElementById("run2").innerText`); strings.Contains(text, "Who held the lock") {
		t.Error("a run without a history has an empty strip")
	}
	b.narrow(t, "report-compare-narrow")
	b.quiet(t)
}

func withoutScripts(t *testing.T, chromium context.Context) {
	dir := crowd{workers: 8, visits: 1000, intrude: 100, seed: 5}.save(t, t.TempDir(), func(*results.Run) {})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1000, 900)
	browser.Call(t, b.Tab, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	b.Show(t, address(t, filepath.Join(dir, File)))
	text := browser.Do(t, b.Tab, chromedp.Text(chromedp.CSS("body")))
	for _, want := range []string{"FAIL", "verify --topology sentinel", "service-loss", "Acquire (winners)",
		"kill-primary@300ms", "GOMAXPROCS",
		"MaxRetries", "need JavaScript", "was killed <b>and</b> replaced"} {
		if !strings.Contains(text, want) {
			t.Errorf("without scripts the page lacks %q", want)
		}
	}
	if strings.Contains(text, "H4sI") {
		t.Error("without scripts the page shows its data")
	}
	b.picture(t, "report-noscript", "")
	b.quiet(t)
}

// printed prints the page with its charts.
func printed(t *testing.T, chromium context.Context) {
	dir := crowd{workers: 8, visits: 1000, intrude: 100, seed: 5}.save(t, t.TempDir(), func(*results.Run) {})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1000, 900)
	b.Draw(t, address(t, filepath.Join(dir, File)))
	pdf := browser.Do(t, b.Tab, chromedp.PrintToPDF(chromedp.PDFPrintBackground()))
	if !bytes.HasPrefix(pdf, []byte("%PDF")) || len(pdf) < 30_000 {
		t.Errorf("printed %d bytes", len(pdf))
	}
	leave(t, "report.pdf", pdf)
	b.quiet(t)
}
