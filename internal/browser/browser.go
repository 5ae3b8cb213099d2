// Package browser is a headless Chromium for tests and for programs that look at pages. Its tabs record complaints
// and network requests. It needs Chromium: `.ci/setup chromium` installs it.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is the time limit for one action of a tab, on a busy machine.
const patience = time.Minute

// Owner is the test, or the program in Run, that a browser belongs to. The browser ends with it.
type Owner interface {
	Helper()
	Context() context.Context
	Cleanup(undo func())
	Fatal(why ...any) // does not return
}

// Run runs a function that owns browsers, for programs, and returns its failure.
func Run(ctx context.Context, owned func(Owner)) error {
	p := &program{ctx: ctx}
	done := make(chan struct{})
	go func() { // its own goroutine, so that Fatal can end it
		defer close(done)
		defer func() {
			for _, undo := range slices.Backward(p.undo) {
				undo()
			}
		}()
		owned(p)
	}()
	<-done
	return p.failed
}

type program struct {
	ctx    context.Context // returned by Context
	undo   []func()
	failed error
}

func (p *program) Helper()                  {}
func (p *program) Context() context.Context { return p.ctx }
func (p *program) Cleanup(undo func())      { p.undo = append(p.undo, undo) }
func (p *program) Fatal(why ...any) {
	p.failed = errors.New(strings.TrimSpace(fmt.Sprintln(why...)))
	runtime.Goexit()
}

// Start starts a Chromium that ends with its owner. It reaches only files and loopback.
func Start(t Owner) context.Context {
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
	dir, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.UserDataDir(dir), chromedp.Env("TMPDIR="+dir), chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.ProxyServer("127.0.0.1:9"))
	t.Cleanup(stop)
	chromium, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(chromium); err != nil {
		t.Fatal(err)
	}
	return chromium
}

// Tab is a page with its complaints and requests.
type Tab struct {
	context.Context
	mu                   sync.Mutex
	complaints, requests []string
}

// Open opens a tab with a screen of the given size in pixels. The tab ends with its owner.
func Open(t Owner, chromium context.Context, wide, high int64) *Tab {
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
	case *cdpruntime.EventExceptionThrown:
		b.complaints = append(b.complaints,
			fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *cdpruntime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s %v", e.Type, e.Args))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// Call sends a command of Chromium's DevTools protocol.
func Call[P, R any](t Owner, b *Tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(b, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Do performs an action in the tab, within a minute.
func Do[T any](t Owner, b *Tab, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// JS evaluates a script and waits for its promise.
func JS[T any](t Owner, b *Tab, script string) T {
	t.Helper()
	return Do(t, b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Size sets the size of the screen and waits until the page has adapted.
func (b *Tab) Size(t Owner, wide, high int64) {
	t.Helper()
	Do(t, b, chromedp.EmulateViewport(wide, high))
}

// Scheme sets the reader's preferred colours: light or dark.
func (b *Tab) Scheme(t Owner, name string) {
	t.Helper()
	Call(t, b, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: name}}})
}

// Media sets the medium of the layout: screen or print.
func (b *Tab) Media(t Owner, name string) {
	t.Helper()
	Call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: name})
}

// Show loads a page.
func (b *Tab) Show(t Owner, url string) {
	t.Helper()
	Do(t, b, chromedp.Navigate(url))
}

// Draw loads a page of this project and waits until all of it is drawn, also out of sight.
func (b *Tab) Draw(t Owner, url string) {
	t.Helper()
	b.Show(t, url)
	Do(t, b, chromedp.WaitVisible(chromedp.CSS("html[data-ready=yes]")))
	b.Act(t, "drawAll()")
}

// Act runs a script in the page and waits until the result is displayed.
func (b *Tab) Act(t Owner, script string) {
	t.Helper()
	JS[bool](t, b, script+"; new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")
}

// Quiet fails its owner if the browser complained, if the page requested a forbidden URL, or if no request was seen.
func (b *Tab) Quiet(t Owner, allowed func(url string) bool) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var wrong []string
	for _, c := range b.complaints {
		wrong = append(wrong, "the browser complained: "+c)
	}
	for _, r := range b.requests {
		if !allowed(r) {
			wrong = append(wrong, "the page asked for "+r)
		}
	}
	if len(b.requests) == 0 {
		wrong = append(wrong, "no request was seen, not even that for the page: the owner is blind")
	}
	if len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
}
