// Command livepage follows a real run of 200 workers in a browser: the page changes every second at least, has no
// complaint, and after its first minutes neither the page nor the suite keeps more.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdpruntime "github.com/chromedp/cdproto/runtime"

	"hammerlock/internal/browser"
	"hammerlock/internal/cli"
	"hammerlock/internal/crew"
)

func main() {
	ctx := context.Background()
	if len(os.Args) == 2 && os.Args[1] == crew.Command { // a worker process
		os.Exit(cli.Bench(ctx, cli.Env{Args: os.Args[1:], Stdin: os.Stdin, Getenv: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr}))
	}
	length := flag.Duration("for", 10*time.Minute, "how long the page is followed")
	flag.Parse()
	if err := browser.Run(ctx, func(t browser.Owner) { follow(t, *length) }); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// start starts the run. It goes on for longer than it is watched: a page that has become the report is another.
func start(t browser.Owner, length time.Duration) (url string) {
	dir, err := os.MkdirTemp("", "livepage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx, stop := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cli.Bench(ctx, cli.Env{Stdout: io.Discard, Stderr: stderr, Args: []string{"--topology", "single", "--lock", "redsync",
			"--workers", "200", "--pages", "50", "--rate", "300/s", "--duration", (2 * length).String(), "--warmup", "1s", "--seed", "1",
			"--web", ":0", "--quiet", "--out", dir}})
		_ = stderr.Close()
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	lines := bufio.NewReader(said)
	first, err := lines.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "live at ")
	if err != nil || !ok {
		t.Fatal(fmt.Sprintf("the first line is %q: %v", first, err))
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // so that nobody waits for its reader
	return url
}

const parts = 10

func follow(t browser.Owner, length time.Duration) {
	b := browser.Open(t, browser.Start(t), 1200, 1500)
	url := start(t, length)
	b.Draw(t, url)
	browser.JS[bool](t, b, `let last = performance.now(); window.gaps = [];
		new MutationObserver(() => { const now = performance.now(); gaps.push(now - last); last = now; })
			.observe(document.documentElement, {attributes: true, attributeFilter: ["data-at"]}); true`)
	var page, suite []float64 // MB
	gap := 0.0
	for i := range parts {
		<-time.After(length / parts)
		browser.Call(t, b, heapprofiler.CollectGarbage, cdp.Empty{})
		page = append(page, browser.Call(t, b, cdpruntime.GetHeapUsage, cdp.Empty{}).UsedSize/1e6)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		suite = append(suite, float64(m.HeapAlloc)/1e6)
		updates := browser.JS[[]float64](t, b, `gaps.splice(0).sort((a, b) => a - b)`)
		if len(updates) == 0 {
			t.Fatal(fmt.Sprintf("part %d: the page shows nothing new", i))
		}
		gap = max(gap, updates[len(updates)/2])
		fmt.Printf("part %2d: page %.1f MB, suite %.1f MB; %d updates, in the middle %.0f ms apart, at most %.0f ms\n",
			i, page[i], suite[i], len(updates), updates[len(updates)/2], updates[len(updates)-1])
	}
	b.Quiet(t, func(asked string) bool { return strings.HasPrefix(asked, url) || strings.HasPrefix(asked, "data:") })
	var err error
	if gap > 1000 {
		err = errors.Join(err, fmt.Errorf("updates come %.0f ms apart", gap))
	}
	if page[parts-1] > 1.5*page[2]+2 || suite[parts-1] > 1.5*suite[2]+10 {
		err = errors.Join(err, fmt.Errorf("memory grows: the page has %.1f MB, the suite %.1f MB", page, suite))
	}
	if err != nil {
		t.Fatal(err)
	}
}
