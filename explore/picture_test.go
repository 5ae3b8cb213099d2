package explore

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// drawn is what a picture contains.
type drawn struct {
	text string   // without spaces, because lines may break anywhere
	bars int      // number of leases
	odd  int      // number of marks and messages of deviations
	wild []string // numbers outside of the picture
}

func readPicture(t *testing.T, picture string) drawn {
	t.Helper()
	d, wide, high := drawn{}, 0, 0
	for in := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		switch x := token.(type) {
		case xml.CharData:
			d.text += strings.Join(strings.Fields(string(x)), "")
		case xml.StartElement:
			for _, a := range x.Attr {
				n, err := strconv.Atoi(a.Value)
				switch {
				case x.Name.Local == "svg" && a.Name.Local == "width":
					wide = n
				case x.Name.Local == "svg" && a.Name.Local == "height":
					high = n
				case err == nil && (n < 0 || strings.HasPrefix(a.Name.Local, "x") && n > wide || n > max(wide, high)):
					d.wild = append(d.wild, fmt.Sprint(x.Name.Local, a))
				case a.Name.Local == "class" && a.Value == "bar":
					d.bars++
				case a.Name.Local == "class" && x.Name.Local == "path" && strings.Contains(a.Value, "odd"):
					d.odd++
				}
			}
		}
	}
}

// TestAPictureSaysWhatTheTraceSays: it has every word of the trace, the leases and the deviations.
func TestAPictureSaysWhatTheTraceSays(t *testing.T) {
	three := suited(find(t, "upgrade-drops"), 1)
	three.Clients, three.Visits = 3, 1
	for name, o := range map[string]*Options{"plain-del": nil, "setnx": nil, "float-quorum": nil, "half-quorum": nil,
		"deaf-to-expiry": nil, "local-reentry": nil, "multi-kept": nil, "upgrade-drops": &three} {
		spec := find(t, name)
		if o == nil {
			given := suited(spec, 1)
			o = &given
		}
		f := run(t, spec, *o).Found
		d := readPicture(t, f.Picture)
		for _, line := range f.Trace {
			for _, word := range strings.Fields(line) {
				if word = strings.TrimSuffix(word, ","); word != "->" && !strings.Contains(d.text, word) {
					t.Errorf("%s: the picture lacks %q of\n%s", name, word, line)
				}
			}
		}
		held := strings.Contains(strings.Join(f.Trace, "\n"), "holds the lock")
		if (d.bars > 0) != held || len(d.wild) > 0 || (d.odd > 0) != (len(f.Schedule) > 0) {
			t.Errorf("%s: got %d bars, %d marks, outside: %v of\n%s", name, d.bars, d.odd, d.wild,
				strings.Join(f.Trace, "\n"))
		}
	}
}

// TestALeaseIsDrawnForAsLongAsItLasts: until its end or its release, and not between holds.
func TestALeaseIsDrawnForAsLongAsItLasts(t *testing.T) {
	const client = 0
	p := picture{clients: []int{50}, right: 1}
	for i, l := range []*line{
		{says: []string{"holds"}, until: 25, entered: 1}, {says: []string{"enters"}, until: 25, entered: 1},
		{says: []string{"leaves"}, entered: -1}, {now: 20}, {now: 30}, // its lease ends at 25
		{now: 30, says: []string{"holds"}, until: 90, entered: 1}, {now: 40, says: []string{"leaves"}, entered: -1},
		{now: 50},
	} {
		l.at, l.site, l.client = l.now, -1, client
		if i == 3 || i == 4 || i == 7 {
			l.client = 1
		}
		p.lines = append(p.lines, l)
	}
	p.place()
	p.leases(client)
	var want strings.Builder
	for _, bar := range [][2]int{{0, 3*rowHeight + rowHeight/2}, {5 * rowHeight, 6 * rowHeight}} {
		fmt.Fprintf(&want, `<rect class="bar" x="46" y="%d" width="8" height="%d"/>`+"\n",
			topOfRows+bar[0], bar[1]-bar[0])
	}
	if p.String() != want.String() {
		t.Errorf("got\n%swant\n%s", p.String(), &want)
	}
}
