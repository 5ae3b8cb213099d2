// Command pictures makes the pictures in the documents. It runs bin/bench and bin/verify, and shows them in tmux and
// Chromium.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"hammerlock/internal/browser"
	"hammerlock/tools/kept"
)

const (
	pictures = "docs/pictures"
	mostRows = 3000 // in pixels; longer pages are cut off
)

// groups has the functions that take the pictures, by the name of the group.
var groups = map[string]func(browser.Owner){
	"dashboard": func(t browser.Owner) {
		shootTerminal(t, "dashboard-80x24", 80, 24, lostGrant, "VIOLATED")
		shootTerminal(t, "dashboard-120x40", 120, 40, lostGrant, "VIOLATED")
	},
	"board": func(t browser.Owner) {
		shootTerminal(t, "board-80x24", 80, 24, manyRuns, " FAIL ")
		shootTerminal(t, "board-120x40", 120, 40, manyRuns, " FAIL ")
	},
	"report": shootReport, "comparison": shootComparison, "runs": shootRuns, "scenarios": shootScenarios,
}

func main() {
	only := flag.String("only", "dashboard,board,report,comparison,runs,scenarios",
		"which pictures, separated by commas")
	flag.Parse()
	if err := take(context.Background(), strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func take(ctx context.Context, names []string) error {
	made, err := kept.Now(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		shoot, ok := groups[name]
		if !ok {
			return fmt.Errorf("no pictures %q", name)
		}
		if err := browser.Run(ctx, shoot); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := kept.WriteParts("docs/PICTURES.md", map[string]string{name: kept.Line(made)}); err != nil {
			return err
		}
	}
	return nil
}

// lostGrant returns the command for most pictures. If the failover takes longer than the lease, the run shows no
// violation, and until tries the next seed.
func lostGrant(seed int) []string {
	return []string{"bin/verify", "--topology", "sentinel", "--fault", "lost-grant", "--workers", "12", "--seed",
		fmt.Sprint(seed)}
}

// manyRuns returns the command that runs a broken lock in many scenarios.
func manyRuns(seed int) []string {
	return []string{"bin/verify", "--topology", "single", "--lock", "plain-del", "--seed", fmt.Sprint(seed)}
}

// until calls take with the seeds 1, 2 and so on, until take returns true; it ends with an error after eight seeds.
func until(t browser.Owner, name string, take func(seed int) bool) {
	for seed := 1; seed <= 8; seed++ {
		if take(seed) {
			return
		}
		fmt.Printf("%s: seed %d shows no violation\n", name, seed)
	}
	t.Fatal(name + ": no run showed a violation")
}

// tempDir makes a directory that is removed at the end.
func tempDir(t browser.Owner) string {
	dir, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// shootReport takes pictures of the live page of a run, and then of the run's report.
func shootReport(t browser.Owner) {
	b := browser.Open(t, browser.Start(t), 1200, 1500)
	run := shootLive(t, b)
	b.Size(t, 1100, 900)
	for _, scheme := range []string{"light", "dark"} {
		b.Scheme(t, scheme)
		b.Draw(t, "file://"+run)
		savePNG(t, b, "report-"+scheme, chromedp.FullScreenshot(100))
	}
	b.Scheme(t, "light")
	shootPrinted(t, b, run)
}

func shootComparison(t browser.Owner) {
	dir := tempDir(t)
	mustPass(t, dir, "bench", "ab", "lock=spin", "lock=redislock", "--workers", "8", "--rate", "60/s", "--pairs", "9",
		"--seed", "1", "--html", "comparison.html")
	b := browser.Open(t, browser.Start(t), 1100, 900)
	b.Scheme(t, "light")
	b.Show(t, "file://"+dir+"/comparison.html")
	savePNG(t, b, "comparison", chromedp.FullScreenshot(100))
}

func shootRuns(t browser.Owner) {
	dir := tempDir(t)
	mustPass(t, dir, "bench", "--topology", "single,cluster", "--lock", "lease,watch,spin,redsync,redislock",
		"--workers", "16", "--duration", "3s",
		"--warmup", "500ms", "--seed", "1", "--out", "runs")
	b := browser.Open(t, browser.Start(t), 1100, 900)
	b.Scheme(t, "light")
	b.Draw(t, "file://"+dir+"/runs/report.html")
	savePNG(t, b, "ten-runs", chromedp.FullScreenshot(100))
}

// shootScenarios takes pictures of the report on manyRuns, as a large screen and as a phone show it.
func shootScenarios(t browser.Owner) {
	dir := tempDir(t)
	line := append(manyRuns(1), "--out", dir)
	if said, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil ||
		!strings.Contains(string(said), "FAIL") {
		t.Fatal(fmt.Sprintf("%v: %v\n%s", line, err, said))
	}
	b := browser.Open(t, browser.Start(t), 1100, 900)
	b.Scheme(t, "light")
	b.Draw(t, "file://"+dir+"/report.html")
	savePNG(t, b, "scenarios", chromedp.FullScreenshot(100))
	b.Size(t, 375, 800)
	savePNG(t, b, "scenarios-phone", chromedp.FullScreenshot(100))
}

// mustPass runs a command that must pass. It runs in dir, because the pages show the command with its paths.
func mustPass(t browser.Owner, dir, name string, args ...string) {
	program, err := filepath.Abs("bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Sprintf("%s %v: %v\n%s", name, args, err, said))
	}
}

// shootTerminal runs a command in a hidden terminal until the dashboard shows the text words. Then it takes a
// picture.
func shootTerminal(t browser.Owner, name string, wide, high int, line func(seed int) []string, words string) {
	socket := fmt.Sprintf("hammerlock-%d-%s", os.Getpid(), name)
	terminal := func(args ...string) (string, error) {
		cmd := exec.Command("tmux", append([]string{"-L", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "CI=", "NO_COLOR=")
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	until(t, name, func(seed int) bool {
		command := strings.Join(line(seed), " ")
		said, err := terminal("new-session", "-d", "-x", fmt.Sprint(wide), "-y", fmt.Sprint(high),
			command+" --out "+tempDir(t))
		if err != nil {
			t.Fatal(fmt.Sprintf("tmux: %v: %s", err, said))
		}
		for err == nil && !strings.Contains(said, words) { // the terminal ends with the run
			<-time.After(100 * time.Millisecond)
			said, err = terminal("capture-pane", "-p")
		}
		<-time.After(2 * time.Second) // until all panels are up to date
		screen, err := terminal("capture-pane", "-p", "-e")
		if err != nil {
			return false
		}
		keep(t, name+".svg", []byte(terminalSVG(fmt.Sprintf("the dashboard of %s in a terminal of %d x %d", command,
			wide, high), screen)))
		_, err = terminal("kill-server")
		return err == nil
	})
}

// shootLive runs lostGrant until the live page shows the violation, and takes pictures. It returns the path of the
// report.
func shootLive(t browser.Owner, b *browser.Tab) (file string) {
	until(t, "live", func(seed int) bool {
		out := tempDir(t)
		args := append(lostGrant(seed), "--web", ":0", "--out", out)
		cmd := exec.Command(args[0], args[1:]...)
		pipe, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(pipe)
		first, err := said.ReadString('\n')
		url, ok := strings.CutPrefix(strings.TrimSpace(first), "live at ")
		if err != nil || !ok {
			t.Fatal(fmt.Sprintf("got %q, %v, want the address of the page", first, err))
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, said)
		}()
		b.Scheme(t, "light")
		b.Draw(t, url)
		for seen := false; !seen; {
			select {
			case <-ended:
				_ = cmd.Wait() // this run showed no violation, so its exit code does not matter
				return false
			case <-time.After(200 * time.Millisecond):
				seen = browser.JS[bool](t, b, `/\d violation/.test(document.body ? document.body.innerText : "")`)
			}
		}
		b.Act(t, "drawAll()")
		savePNG(t, b, "live", chromedp.CaptureScreenshot())
		<-ended
		_ = cmd.Wait()
		file, err = filepath.EvalSymlinks(out + "/latest") // the last saved run
		return err == nil && cmd.ProcessState.ExitCode() == 1
	})
	return file + "/report.html"
}

// shootPrinted takes a picture of a report as printed on A4 paper, but without page breaks.
func shootPrinted(t browser.Owner, b *browser.Tab, file string) {
	b.Size(t, 718, 1040)
	b.Draw(t, "file://"+file)
	b.Media(t, "print")
	b.Act(t, "drawAll()")
	savePNG(t, b, "report-print", chromedp.FullScreenshot(100))
	b.Media(t, "screen")
}

// savePNG saves the picture of a page with at most 256 colours; take makes the picture.
func savePNG(t browser.Owner, b *browser.Tab, name string, take chromedp.Action[[]byte]) {
	img, err := png.Decode(bytes.NewReader(browser.Do(t, b, take)))
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&data, fewColors(img)); err != nil {
		t.Fatal(err)
	}
	keep(t, name+".png", data.Bytes())
}

func keep(t browser.Owner, name string, data []byte) {
	if err := os.WriteFile(filepath.Join(pictures, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s: %d bytes\n", name, len(data))
}

// fewColors keeps the 256 most frequent colours of a picture, and replaces each other colour by the nearest of them.
// Pages have few colours except at the edges of letters, where the exact shade does not matter.
func fewColors(img image.Image) *image.Paletted {
	type rgb = color.RGBA
	count := map[rgb]int{}
	bounds := img.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, mostRows)
	at := func(x, y int) rgb { return color.RGBAModel.Convert(img.At(x, y)).(rgb) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			count[rgb{R: c.R &^ 3, G: c.G &^ 3, B: c.B &^ 3, A: 255}]++
		}
	}
	often := slices.SortedFunc(maps.Keys(count), func(a, b rgb) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range often[:min(len(often), 256)] {
		palette = append(palette, c)
	}
	few, index := image.NewPaletted(bounds, palette), map[rgb]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := index[c]
			if !known {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	return few
}
