package deployment

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"hammerlock/workload"
)

// paged is a counter whose pages are numbers. Each page has as many views as its number. It counts the requests.
type paged struct {
	workload.Counter
	asked, broken int // the request with the number broken gets no answer
}

func (p *paged) Load(_ context.Context, page string) (workload.Count, error) {
	if p.asked++; p.asked == p.broken {
		return workload.Count{}, errors.New("i/o timeout")
	}
	n, err := strconv.ParseInt(page, 10, 64)
	return workload.Count{Views: n}, err
}

// listed is a paged counter that can read many pages in one request.
type listed struct{ paged }

func (l *listed) LoadAll(_ context.Context, pages []string) (counts []workload.Count, err error) {
	if l.asked++; l.asked == l.broken {
		return nil, errors.New("i/o timeout")
	}
	for _, page := range pages {
		n, err := strconv.ParseInt(page, 10, 64)
		if err != nil {
			return nil, err
		}
		counts = append(counts, workload.Count{Views: n})
	}
	return counts, nil
}

// TestViewsOfManyPages reads more pages than one round trip can. There are two counters: the first reads one page in a
// request, and the second reads many. A request without an answer is repeated.
func TestViewsOfManyPages(t *testing.T) {
	const pages = 2*atOnce + 1
	d := &Deployment{}
	for i := range pages {
		d.Pages = append(d.Pages, workload.Page{Views: strconv.Itoa(i)})
	}
	one, many := &paged{broken: 5}, &listed{paged{broken: 2}}
	for _, d.store.counter = range []workload.Counter{one, many} {
		counts, err := d.Views(t.Context())
		if err != nil || len(counts) != pages {
			t.Fatalf("got %d counts, %v", len(counts), err)
		}
		for i, c := range counts {
			if c.Views != int64(i) {
				t.Fatalf("page %d has %d views", i, c.Views)
			}
		}
	}
	if one.asked < pages || many.asked != 4 {
		t.Errorf("it took %d requests for a page each, and %d for many", one.asked, many.asked)
	}
}
