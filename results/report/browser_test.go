package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"hammerlock/results"
)

// artifacts is where pictures of the report are left for a look at them.
const artifacts = "../../bin/artifacts"

// chromium starts a headless Chromium for the tests that follow.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium here: `sh .ci/setup chromium` installs it")
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"), chromedp.ProxyServer("127.0.0.1:9"))
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// browser is a tab that notes what it complains of and what it asks the network for.
type browser struct {
	context.Context
	mu                   sync.Mutex
	complaints, requests []string
}

func openTab(t *testing.T, chromium context.Context, wide, high int64) *browser {
	t.Helper()
	b := &browser{}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	b.Context = ctx
	call(t, b, network.Enable, network.EnableParams{})
	call(t, b, log.Enable, cdp.Empty{})
	b.size(t, wide, high)
	return b
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s %v", e.Type, e.Args))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "data:") {
			b.requests = append(b.requests, e.Request.URL)
		}
	}
}

func call[P, R any](t *testing.T, b *browser, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(b, command, params); err != nil {
		t.Fatal(err)
	}
}

// run lets the browser do something, for a minute at most.
func run[T any](t *testing.T, b *browser, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// js evaluates a script, and waits for what it promises.
func js[T any](t *testing.T, b *browser, script string) T {
	t.Helper()
	return run(t, b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// size gives the screen a size and waits until the page has followed.
func (b *browser) size(t *testing.T, wide, high int64) {
	t.Helper()
	run(t, b, chromedp.EmulateViewport(wide, high))
}

// scheme says what the system of the reader prefers: light or dark.
func (b *browser) scheme(t *testing.T, name string) {
	t.Helper()
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// open shows a file and waits until everything is drawn.
func (b *browser) open(t *testing.T, path string) {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, b, chromedp.Navigate("file://"+full))
	run(t, b, chromedp.WaitVisible(chromedp.CSS("html[data-ready=yes]")))
	b.act(t, "drawAll()")
}

// act lets the page do something and show it.
func (b *browser) act(t *testing.T, script string) {
	t.Helper()
	js[bool](t, b, script+"; new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")
}

// quiet fails the test if the browser complained, or asked for anything but the file.
func (b *browser) quiet(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Errorf("the browser complained: %s", c)
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, "file://") || !strings.HasSuffix(r, ".html") {
			t.Errorf("the page asked for %s", r)
		}
	}
	if len(b.requests) == 0 {
		t.Error("no request was seen, not even that for the page: the test is blind")
	}
}

// leave writes a file for a look at it.
func leave(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(artifacts, 0o755), os.WriteFile(filepath.Join(artifacts, name), data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// picture leaves a picture and returns how many colours it has.
func (b *browser) picture(t *testing.T, name, selector string) int {
	t.Helper()
	take := chromedp.FullScreenshot(100)
	if selector != "" {
		take = chromedp.Screenshot(chromedp.CSS(selector))
	}
	shot := run(t, b, take)
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

// drawn returns the state of every panel: how many of its canvas's pixels are inked.
const drawnScript = `[...document.querySelectorAll("[data-chart]")].map(box => {
	const canvas = box.querySelector("canvas:not(.swatch)");
	let ink = 0;
	if (canvas) {
		const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
		copy.drawImage(canvas, 0, 0);
		const p = copy.getImageData(0, 0, canvas.width, canvas.height).data;
		for (let i = 3; i < p.length; i += 4) if (p[i] > 0) ink++;
	}
	return {name: (box.closest("[data-run]") || {id: "all"}).id + " " + box.dataset.chart, state: box.dataset.drawn || "", ink};
})`

type panel struct {
	Name  string
	State string
	Ink   int
}

func (b *browser) panels(t *testing.T) []panel {
	t.Helper()
	return js[[]panel](t, b, drawnScript)
}

func (b *browser) text(t *testing.T, script string) string {
	t.Helper()
	return js[string](t, b, script)
}

// inkOf counts the pixels of a theme's colour in the strip.
func (b *browser) inkOf(t *testing.T, name string) int {
	t.Helper()
	return js[int](t, b, fmt.Sprintf(`(() => {
		const c = page.strips.run0.canvas, x = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true});
		x.fillStyle = color(%q); x.fillRect(0, 0, 1, 1);
		const want = x.getImageData(0, 0, 1, 1).data;
		x.clearRect(0, 0, c.width, c.height);
		x.drawImage(c, 0, 0);
		const p = x.getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < p.length; i += 4) if (Math.abs(p[i] - want[0]) + Math.abs(p[i+1] - want[1]) + Math.abs(p[i+2] - want[2]) < 12 && p[i+3] > 250) n++;
		return n;
	})()`, name))
}

// TestReportInABrowser shows pages in one browser, a tab after the other: it draws what is in front.
func TestReportInABrowser(t *testing.T) {
	browser := chromium(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"one run": oneRun, "several runs": severalRuns, "without scripts": withoutScripts, "printed": printed,
	} {
		t.Run(name, func(t *testing.T) { test(t, browser) })
	}
}

func oneRun(t *testing.T, chromium context.Context) {
	dir := crowd{workers: 16, visits: 4000, intrude: 400, seed: 5}.save(t, t.TempDir(), func(*results.Run) {})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1280, 900)
	b.scheme(t, "light")
	b.open(t, filepath.Join(dir, File))
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
	b.scheme(t, "dark")
	b.act(t, `page.strips.run0.show(0, 1e18)`)
	if back := b.text(t, `getComputedStyle(document.body).backgroundColor`); back != "rgb(14, 19, 25)" {
		t.Errorf("the dark page is %s", back)
	}
	b.picture(t, "report-dark", "")
	b.size(t, 400, 900)
	b.act(t, `document.getElementById("theme").click()`)
	if wide := b.text(t, `String(document.documentElement.scrollWidth)`); wide != "400" {
		t.Errorf("the page is %s pixels wide on a screen of 400", wide)
	}
	b.picture(t, "report-narrow", "")
	b.quiet(t)
}

// strip goes from the whole run to a millisecond around a violation and on to its operations.
func (b *browser) strip(t *testing.T) {
	t.Helper()
	if n := b.inkOf(t, "overlap"); n < 20 {
		t.Errorf("the whole run shows its overlaps in %d pixels", n)
	}
	b.act(t, `page.strips.run0.jump(1, 1e6)`)
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
	b.act(t, `page.strips.run0.canvas.focus()`)
	run(t, b, chromedp.KeyEvent("0"))
	run(t, b, chromedp.KeyEvent("+"))
	if whole := b.text(t, `String(Math.round(page.strips.run0.s.end / (page.strips.run0.view[1] - page.strips.run0.view[0])))`); whole != "2" {
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
	if err := os.Remove(filepath.Join(dirs[2], results.HistoryFile)); err != nil { // as bench leaves it
		t.Fatal(err)
	}
	path := filepath.Join(out, File)
	if err := Write(path, dirs); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1280, 900)
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, b, chromedp.Navigate("file://"+full))
	run(t, b, chromedp.WaitVisible(chromedp.CSS("[data-chart=pareto][data-drawn=yes]"))) // what is in sight is drawn unasked
	if late := b.text(t, `document.querySelector("#run2 [data-chart=lorenz]").dataset.drawn || "not yet"`); late != "not yet" {
		t.Errorf("what is far out of sight is drawn at once: %s", late)
	}
	b.open(t, path)
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
	b.quiet(t)
}

func withoutScripts(t *testing.T, chromium context.Context) {
	dir := crowd{workers: 8, visits: 1000, intrude: 100, seed: 5}.save(t, t.TempDir(), func(*results.Run) {})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1000, 900)
	call(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	full, err := filepath.Abs(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	run(t, b, chromedp.Navigate("file://"+full))
	text := run(t, b, chromedp.Text(chromedp.CSS("body")))
	for _, want := range []string{"FAIL", "verify --topology sentinel", "service-loss", "Acquire (winners)", "kill-primary@300ms", "GOMAXPROCS",
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

// printed prints the page, charts and all.
func printed(t *testing.T, chromium context.Context) {
	dir := crowd{workers: 8, visits: 1000, intrude: 100, seed: 5}.save(t, t.TempDir(), func(*results.Run) {})
	if err := save(dir); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, chromium, 1000, 900)
	b.open(t, filepath.Join(dir, File))
	pdf := run(t, b, chromedp.PrintToPDF(chromedp.PDFPrintBackground()))
	if !bytes.HasPrefix(pdf, []byte("%PDF")) || len(pdf) < 30_000 {
		t.Errorf("printed %d bytes", len(pdf))
	}
	leave(t, "report.pdf", pdf)
	b.quiet(t)
}
