package service

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/workload"
)

var pages = workload.Pages("", 2, false)

// opened is a service on a test server. The function visit answers visits; the count begins with 10.
func opened(t *testing.T, visit http.HandlerFunc, change func(*Spec)) (*Service, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/count" {
			_, _ = fmt.Fprintln(w, 10)
			return
		}
		visit(w, r)
	}))
	t.Cleanup(server.Close)
	s := Spec{
		Visit: Request{"POST", []string{server.URL + "/visit/" + PagePlace}},
		Count: Request{"GET", []string{server.URL + "/count"}}, Timeout: live.Deadline,
	}
	if change != nil {
		change(&s)
	}
	c, err := Open(t.Context(), s, pages, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, server
}

// cut breaks the connection of a request.
func cut(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func TestVisitsSayWhatIsCertain(t *testing.T) {
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}
	}
	refuses := func(s *Spec) { s.Refusal = []int{409, 503} }
	for name, c := range map[string]struct {
		visit   http.HandlerFunc
		change  func(*Spec)
		count   int64
		outcome history.Outcome
		reason  history.Reason
	}{
		"a count":                {says(200, " 13\n"), nil, 3, history.OK, history.None},
		"another 2xx, no count":  {says(201, "thanks"), nil, 0, history.OK, history.None},
		"a count that is none":   {says(200, "13"), func(s *Spec) { s.Silent = true }, 0, history.OK, history.None},
		"less than before":       {says(200, "7"), nil, -3, history.OK, history.None},
		"an error":               {says(500, "13"), nil, 500, history.Unknown, history.Other},
		"not found":              {says(404, ""), nil, 404, history.Unknown, history.Other},
		"a refusal":              {says(503, "busy"), refuses, 503, history.Failed, history.Refused},
		"an error is no refusal": {says(502, ""), refuses, 502, history.Unknown, history.Other},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/count", http.StatusSeeOther)
		}, nil,
			303, history.Unknown, history.Other},
		"a cut connection": {func(w http.ResponseWriter, _ *http.Request) {
			cut(w)
		}, nil, 0, history.Unknown, history.Dropped},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, "13")
		}, nil, 0, history.Unknown, history.Dropped},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(s *Spec) { s.Timeout = 300 * time.Millisecond }, 0, history.Unknown, history.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			live.Again(t, func(int) string {
				service, _ := opened(t, c.visit, c.change)
				n, err := service.Visit(t.Context(), 0, 1)
				outcome, reason := locks.Classify(err)
				if c.reason == history.Timeout && outcome == history.Failed {
					return "the time was over before the request was sent"
				}
				if n != c.count || outcome != c.outcome || reason != c.reason {
					t.Errorf("got %d, %v %v (%v), want %d, %v %v", n, outcome, reason, err, c.count,
						c.outcome, c.reason)
				}
				return ""
			})
		})
	}
}

// TestRefusedConnectionIsNoVisit visits a service that has ended.
func TestRefusedConnectionIsNoVisit(t *testing.T) {
	service, server := opened(t, func(http.ResponseWriter, *http.Request) {}, nil)
	server.Close()
	if err := service.Close(); err != nil { // an open connection would be found broken
		t.Fatal(err)
	}
	_, err := service.Visit(t.Context(), 0, 0)
	if outcome, reason := locks.Classify(err); outcome != history.Failed || reason != history.Unreachable {
		t.Errorf("got %v %v: %v", outcome, reason, err)
	}
}

// TestNoVisitIsSentTwice breaks a reused connection: HTTP clients then repeat a GET.
func TestNoVisitIsSentTwice(t *testing.T) {
	for _, method := range []string{"GET", "POST", "PUT", "HEAD"} {
		t.Run(method, func(t *testing.T) {
			var visits atomic.Int64
			service, _ := opened(t, func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
					t.Errorf("a body was announced: %d %v", r.ContentLength, r.TransferEncoding)
				}
				if visits.Add(1) == 2 {
					cut(w)
				}
			}, func(s *Spec) { s.Visit.Method = method })
			if _, err := service.Visit(t.Context(), 0, 0); err != nil {
				t.Fatal(err)
			}
			_, err := service.Visit(t.Context(), 0, 0)
			if outcome, _ := locks.Classify(err); outcome != history.Unknown || visits.Load() != 2 {
				t.Errorf("got %v (%v) after %d visits, want an unknown one after 2", outcome, err, visits.Load())
			}
		})
	}
}

// TestWorkersShareAddresses expects workers to use the two addresses in turn.
func TestWorkersShareAddresses(t *testing.T) {
	var paths []string
	service, _ := opened(t, func(_ http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
	}, func(s *Spec) {
		s.Visit.URLs = append(s.Visit.URLs, strings.Replace(s.Visit.URLs[0], "visit", "other", 1))
	})
	for worker := range 3 {
		if _, err := service.Visit(t.Context(), worker, int32(worker%2)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(paths, " "); got != "/visit/0 /other/1 /visit/0" {
		t.Errorf("got %s", got)
	}
	if c, err := service.Load(t.Context(), pages[1].Views); err != nil || c.Views != 0 {
		t.Errorf("got %v, %v: the views are those since it was opened", c, err)
	}
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer Answer
		body   string
		want   int64
		fails  string
	}{
		"number":         {Answer{}, "12\n", 12, ""},
		"no number":      {Answer{}, "<html>", 0, "--field or --match"},
		"field":          {Answer{Field: "views"}, `{"views": 12}`, 12, ""},
		"a large one":    {Answer{Field: "views"}, `{"views": 9007199254740993}`, 9007199254740993, ""},
		"in a text":      {Answer{Field: "views"}, `{"views": "12"}`, 12, ""},
		"deeper":         {Answer{Field: "pages.1.views"}, `{"pages": [0, {"views": 12}]}`, 12, ""},
		"no such field":  {Answer{Field: "pages.2"}, `{"pages": [0, 1]}`, 0, "has no field pages.2"},
		"no document":    {Answer{Field: "views"}, `12 views`, 0, "has no field"},
		"no JSON":        {Answer{Field: "views"}, `views`, 0, "is no JSON"},
		"a fraction":     {Answer{Field: "views"}, `{"views": 1.5}`, 0, "whole number"},
		"match":          {Answer{Match: regexp.MustCompile(`views: (\d+)`)}, "likes: 3, views: 12", 12, ""},
		"without groups": {Answer{Match: regexp.MustCompile(`\d+`)}, "views: 12", 12, ""},
		"no match":       {Answer{Match: regexp.MustCompile(`\d+`)}, "none", 0, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.answer.read([]byte(c.body))
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) ||
				got != c.want {
				t.Errorf("got %d, %v; want %d, %q", got, err, c.want, c.fails)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	for text, want := range map[string]string{
		"post http://a/x":              "",
		"POST http://a/x https://b/y":  "",
		"http://a/x":                   "a method and an address",
		"POST":                         "a method and an address",
		"POST a/x":                     "begins with http",
		"POST http://me:secret@a/x":    "leave out what ends with @",
		"POST http://a/x file:///etc/": "begins with http",
	} {
		r, err := ParseRequest(text)
		if want == "" && (err != nil || !strings.EqualFold(r.String(), text)) || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, %v; want %q", text, r, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", text, err)
		}
	}
	for address, want := range map[string]string{"http://a/v3/pview/{page}": "v3-pview-0", "http://a": "service",
		"http://a/?x=1": "service", "http://a/ü": "service"} {
		if got := (&Spec{Visit: Request{"POST", []string{address}}}).Name(); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
