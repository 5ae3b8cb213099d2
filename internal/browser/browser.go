// Package browser is a headless Chromium for tests and for the pictures of the documents: tabs that note what they complain of
// and what they ask the network for. Whoever uses it needs Chromium: `.ci/setup chromium` installs it.
package browser

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long one thing that a tab does may take, on a machine that has much else to do.
const patience = time.Minute

// Start starts a Chromium that ends with the test. It reaches files and loopback, nothing else.
func Start(t testing.TB) context.Context {
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
	dir := t.TempDir()
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.UserDataDir(dir), chromedp.Env("TMPDIR="+dir), chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.ProxyServer("127.0.0.1:9"))
	t.Cleanup(stop)
	chromium, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(chromium); err != nil {
		t.Fatal(err)
	}
	return chromium
}

// Tab is a page, and what it complains of and asks for.
type Tab struct {
	context.Context
	mu                   sync.Mutex
	complaints, requests []string
}

// Open opens a tab with a screen of that size in pixels. It is closed with the test.
func Open(t testing.TB, chromium context.Context, wide, high int64) *Tab {
	t.Helper()
	b := &Tab{}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	b.Context = ctx
	Call(t, b, network.Enable, network.EnableParams{})
	Call(t, b, log.Enable, cdp.Empty{})
	b.Size(t, wide, high)
	return b
}

func (b *Tab) note(event any) {
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
		b.requests = append(b.requests, e.Request.URL)
	}
}

// Call sends a command of the protocol of Chromium's developer tools.
func Call[P, R any](t testing.TB, b *Tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(b, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Do lets the tab do something, for a minute at most.
func Do[T any](t testing.TB, b *Tab, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// JS evaluates a script, and waits for what it promises.
func JS[T any](t testing.TB, b *Tab, script string) T {
	t.Helper()
	return Do(t, b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Size gives the screen a size and waits until the page has followed.
func (b *Tab) Size(t testing.TB, wide, high int64) {
	t.Helper()
	Do(t, b, chromedp.EmulateViewport(wide, high))
}

// Scheme says what the system of the reader prefers: light or dark.
func (b *Tab) Scheme(t testing.TB, name string) {
	t.Helper()
	Call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// Media says for what the page is laid out: screen or print.
func (b *Tab) Media(t testing.TB, name string) {
	t.Helper()
	Call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: name})
}

// Show shows a page.
func (b *Tab) Show(t testing.TB, url string) {
	t.Helper()
	Do(t, b, chromedp.Navigate(url))
}

// Draw shows a page of this project and waits until everything in it is drawn, in sight or not.
func (b *Tab) Draw(t testing.TB, url string) {
	t.Helper()
	b.Show(t, url)
	Do(t, b, chromedp.WaitVisible(chromedp.CSS("html[data-ready=yes]")))
	b.Act(t, "drawAll()")
}

// Act lets the page do something and show it.
func (b *Tab) Act(t testing.TB, script string) {
	t.Helper()
	JS[bool](t, b, script+"; new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")
}

// Quiet fails the test if the browser complained, if the page asked for something that is not allowed, or if no request was seen at all.
func (b *Tab) Quiet(t testing.TB, allowed func(url string) bool) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Errorf("the browser complained: %s", c)
	}
	for _, r := range b.requests {
		if !allowed(r) {
			t.Errorf("the page asked for %s", r)
		}
	}
	if len(b.requests) == 0 {
		t.Error("no request was seen, not even that for the page: the test is blind")
	}
}
