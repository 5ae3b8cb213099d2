package web

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hammerlock/internal/browser"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
)

// tab is the page of a run.
type tab struct{ *browser.Tab }

// shows waits until the page shows that moment.
func (b tab) shows(t *testing.T, at time.Duration) {
	t.Helper()
	browser.JS[bool](t, b.Tab, fmt.Sprintf(`new Promise(done => {
		const look = () => document.documentElement.dataset.at === "%d" ?
			requestAnimationFrame(() => done(true)) : setTimeout(look, 10);
		look();
	})`, at))
}

// heap is the memory of the page's script in bytes, and the number of elements.
func (b tab) heap(t *testing.T) (bytes float64, elements int) {
	t.Helper()
	browser.Call(t, b.Tab, heapprofiler.CollectGarbage, cdp.Empty{})
	use := browser.Call(t, b.Tab, runtime.GetHeapUsage, cdp.Empty{})
	return use.UsedSize, browser.JS[int](t, b.Tab, `document.querySelectorAll("*").length`)
}

// TestPageInABrowser shows a run of 200 workers in a real browser. All charts must be drawn, and the page must not
// use more and more memory. At the end, the report replaces the page.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	s, end := start(t)
	b := tab{browser.Open(t, browser.Start(t), 1200, 1500)}
	s.Publish(snapshot(5, 200))
	b.Draw(t, s.URL())
	const ink = `JSON.stringify([...document.querySelectorAll("[data-chart]")].map(box => {
		const c = box.querySelector("canvas");
		const p = c ? c.getContext("2d").getImageData(0, 0, c.width, c.height).data : [];
		let n = 0;
		for (let i = 3; i < p.length; i += 4) if (p[i] > 0) n++;
		return n > 500;
	}))`
	if got := browser.JS[string](t, b.Tab, ink); got != "[true,true,true,true,true,true]" {
		t.Errorf("panels with something in them: %s", got)
	}
	for n := 6; n < 12; n++ {
		s.Publish(snapshot(n, 200))
		b.shows(t, time.Duration(n)*time.Second)
	}
	b.keepsNoMore(t, s)
	url := browser.JS[string](t, b.Tab, `location.href`)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(`<!DOCTYPE html><link rel="icon" href="data:,"><title>the report</title>`),
		0o600); err != nil {
		t.Fatal(err)
	}
	end(file)
	browser.JS[bool](t, b.Tab,
		`new Promise(done => {
			const look = () => document.title === "the report" ? done(true) : setTimeout(look, 10);
			look();
		})`)
	if now := browser.JS[string](t, b.Tab, `location.href`); now != url {
		t.Errorf("the report is at %s, the page was at %s", now, url)
	}
	b.quiet(t, s.URL())
}

// keepsNoMore sends frames for a long time and expects the page's memory to stop growing.
func (b tab) keepsNoMore(t *testing.T, s *Server) {
	t.Helper()
	shown, step := 12, 50 // number of frames, and the seconds between them
	if !testing.Short() {
		shown, step = 150, 10
	}
	frames := func(from int) {
		for n := from; n < from+shown*step; n += step {
			s.send(snapshot(n, 200))
			b.shows(t, time.Duration(n)*time.Second)
		}
	}
	for n := 20; n < keptSeconds+60; n += 50 {
		s.send(snapshot(n, 200))
	}
	frames(keptSeconds + 100)
	before, elements := b.heap(t)
	frames(3 * keptSeconds)
	after, more := b.heap(t)
	if t.Logf("the page keeps %.1f MB, and %.1f MB after as many frames again", before/1e6, after/1e6); after > before+
		1e6 || more != elements {
		t.Errorf("from %.0f bytes and %d elements the page grew to %.0f and %d", before, elements, after, more)
	}
}

// quiet fails the test if the browser complained or requested anything but the page and its events.
func (b tab) quiet(t *testing.T, url string) {
	t.Helper()
	b.Quiet(t, func(asked string) bool { return asked == url || asked == url+"events" || asked == "data:," })
}
