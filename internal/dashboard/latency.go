package dashboard

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// latency draws the table of percentiles. Below are the random waiter's wait and the longest wait, which percentiles
// hide.
func latency(c canvas, s *measure.Snapshot) {
	c = c.panel("latency", dashes(s, c.w < 56))
	column := max(min((c.w-12)/3, 12), 8)
	for i, head := range []string{"now", "10 s", "run"} {
		c.put(12+(i+1)*column-len(head), 0, faint, head)
	}
	y := 1
	for _, r := range s.Latency {
		for i, p := range []string{"p50", "p99"} {
			name := ""
			if i == 0 {
				name = r.Name
			}
			c.put(0, y, plain, fmt.Sprintf("%-8s %s", name, p))
			for k, q := range []measure.Quantiles{r.Now, r.Ten, r.Run} {
				text := q.Text(i == 1)
				c.put(12+(k+1)*column-utf8.RuneCountInString(text), y, plain, text)
			}
			y++
		}
	}
	if s.Head.Unseen {
		return
	}
	longest, t := "no worker waits now", plain
	if s.LongestBy >= 0 {
		longest = fmt.Sprintf("longest now %s by w%02d", human.Duration(s.Longest), s.LongestBy)
	}
	if s.Longest > 10*max(s.Random.P50, time.Millisecond) && s.Random.Count > 0 {
		t = warning
	}
	random := "random waiter " + s.Random.Text(false)
	if c.h > y+1 {
		c.put(0, y, plain, random+"  p99 "+s.Random.Text(true))
		c.put(0, y+1, t, longest)
		return
	}
	if c.w < utf8.RuneCountInString(random+longest)+2 {
		longest = "longest " + human.Duration(s.Longest)
	}
	c.put(c.put(0, y, plain, random)+2, y, t, longest)
}

// dashes explains why some percentiles are "-"; empty = none is.
func dashes(s *measure.Snapshot, narrow bool) string {
	var most int64
	none, few := true, false
	for _, r := range s.Latency {
		for _, q := range []measure.Quantiles{r.Now, r.Ten, r.Run} {
			none, most = none && q.Count == 0, max(most, q.Count)
			few = few || !results.Supports(0.99, q.Count)
		}
	}
	switch {
	case none && s.At < s.From:
		return "-: the warm-up goes on"
	case none:
		return "-: nothing is finished yet"
	case few && narrow:
		return "-: p99 needs 500 values"
	case few:
		return "-: too few; p50 needs 10 values, p99 500"
	}
	return ""
}

// shades has the characters of a heat map. A character stands for at least the given share of the values in a
// second.
var shades = []struct {
	share  float64
	letter string
}{{0.6, "█"}, {0.3, "▓"}, {0.1, "▒"}, {0, "░"}}

// Widths in a heat map: of the numbers on its axis, and of the bars at its side.
const (
	heatNumbers = 8
	heatBars    = 20
)

// heat draws a heat map of durations: a column for each second of the last minute, a row for each band of durations.
// The bars at its side show the sum of all seconds.
func heat(c canvas, s *measure.Snapshot, st *state) {
	what, of := "response", func(x *measure.Second) *measure.Spread { return &x.Response }
	if st.waits && !s.Head.Unseen {
		what, of = "acquire", func(x *measure.Second) *measure.Spread { return &x.Acquire }
	}
	more := "░ some ▒ 10 % ▓ 30 % █ 60 % of a second"
	if other := map[string]string{"response": "waits", "acquire": "responses"}[what]; !s.Head.Unseen {
		more += ", tab: " + other
	}
	c = c.panel(what+" over time", more)
	seconds := s.Seconds[:max(len(s.Seconds)-1, 0)] // without the last second, which is incomplete
	wide := max((c.w-heatNumbers-heatBars)/60, 1)
	columns := min((c.w-heatNumbers-heatBars)/wide, 60)
	seconds = seconds[max(len(seconds)-columns, 0):]
	var sum measure.Spread
	var all uint32
	for i := range seconds {
		for band, n := range of(&seconds[i]) {
			sum[band] += n
			all += n
		}
	}
	if all == 0 || c.h < 3 {
		c.put(0, 0, faint, "no second with a value is over yet")
		return
	}
	low, high := 0, len(sum)-1
	for sum[low] == 0 {
		low++
	}
	for sum[high] == 0 {
		high--
	}
	rows := rowsOf(low, high, c.h-1)
	strip := c.part(heatNumbers, 0, columns*wide, c.h)
	bars := c.part(heatNumbers+columns*wide+1, 0, c.w, c.h)
	top := float64(0)
	for _, r := range rows {
		top = max(top, float64(r.sum(&sum)))
	}
	for y, r := range rows {
		c.put(0, y, faint, fmt.Sprintf("%*s", heatNumbers-1, r.name()))
		for i := range seconds {
			second := of(&seconds[i])
			strip.shade(i*wide, y, wide, float64(r.sum(second)), float64(band{0, len(second)}.sum(second)))
		}
		n := float64(r.sum(&sum))
		x := bars.put(0, y, plain, fmt.Sprintf("%6s ", percent(n/float64(all))))
		bars.bar(x, y, n/top)
	}
	strip.timeAxis(len(rows), seconds[0].At, seconds[0].At+time.Duration(columns)*time.Second)
	for i := range seconds {
		if seconds[i].Fault {
			strip.mark(i*wide, len(rows), "─", warning, "▲")
		}
	}
	bars.put(0, len(rows), faint, fmt.Sprintf("of %s in %d s", human.Count(int64(all)), len(seconds)))
	c.put(0, len(rows), warning, "▲ fault")
}

// band is a row of a heat map: one band of durations, or several that are adjacent.
type band struct{ from, to int }

func (b band) sum(s *measure.Spread) (n uint32) {
	for _, x := range s[b.from:min(b.to, len(s))] {
		n += x
	}
	return n
}

// percent formats a share with one decimal. A small positive share becomes "<0.1 %" and not 0.
func percent(share float64) string {
	if share > 0 && share < 0.001 {
		return "<0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// name formats the shortest duration in the band.
func (b band) name() string {
	if b.from == 0 {
		return "0"
	}
	d := measure.BandFrom(b.from)
	unit, name := time.Microsecond, "µs"
	if d >= time.Second {
		unit, name = time.Second, "s"
	} else if d >= time.Millisecond {
		unit, name = time.Millisecond, "ms"
	}
	return fmt.Sprintf("%d %s", d/unit, name)
}

// rowsOf makes rows of the bands from low to high; the longest durations come first. A row has one band. If there
// are more bands than room, it has the bands of a factor of ten.
func rowsOf(low, high, room int) (rows []band) {
	each := 1
	if high-low+1 > room {
		each = 3
	}
	for from := low; from <= high; {
		to := from + 1
		for each > 1 && to <= high && (to-1)%each != 0 {
			to++
		}
		rows = append([]band{{from, to}}, rows...)
		from = to
	}
	return rows[:min(len(rows), max(room, 0))]
}

// shade paints the character for the share n/all, wide times.
func (c canvas) shade(x, y, wide int, n, all float64) {
	for _, s := range shades {
		if n > 0 && n/all >= s.share {
			for i := range wide {
				c.put(x+i, y, plain, s.letter)
			}
			return
		}
	}
}

// mark writes a letter, but only over a character that is in the argument on.
func (c canvas) mark(x, y int, on string, t tone, letter string) {
	if x < 0 || y < 0 || x >= c.w || y >= c.h {
		return
	}
	r, _, _, _ := c.screen.GetContent(c.x+x, c.y+y)
	if strings.ContainsRune(strings.Map(c.look.letter, on), r) {
		c.put(x, y, t, letter)
	}
}
