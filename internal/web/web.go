// Package web shows a running job on a web page, with the charts and the strip of the report. The page gets data by
// server-sent events. It cannot change the job, and the job never waits for it: a slow page misses snapshots. The
// memory of the server is bounded.
package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/internal/measure"
	"hammerlock/results/report"
)

const (
	frameEvery  = 400 * time.Millisecond
	mostReaders = 32 // limit of pages that are open at the same time
	// farewell is how long the server waits, at the end of the job, for open pages to load the report.
	farewell     = 3 * time.Second
	writeTimeout = 10 * time.Second // limit for sending one frame to a page that does not read
)

// Server serves the page of one job.
type Server struct {
	token   string
	listen  net.Listener
	server  *http.Server
	active  sync.WaitGroup
	drawing sync.WaitGroup // draw, which ends before the other goroutines
	last    atomic.Pointer[measure.Snapshot]
	stop    chan struct{}

	mu      sync.Mutex
	readers int
	changed chan struct{} // closed at each new frame, and then replaced; closed at the end of the job
	log     series
	latest
	done    []doneRun     // saved runs
	page    string        // file with the report, which replaces the page; empty while the job runs
	ended   bool          // no further pages are accepted
	fetched chan struct{} // gets an entry for each page that has loaded the report
}

// doneRun is a saved run, to which the page has a link.
type doneRun struct {
	Name string `json:"name"`
	Link string `json:"link"`
	file string
}

// latest has the latest event of each kind, frame and series. It also has the number of events of each kind so far.
type latest struct {
	frame, series []byte
	frames, grown int
}

// Start starts a server that listens on the address.
func Start(address string) (*Server, error) {
	listen, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{token: rand.Text(), listen: listen, stop: make(chan struct{}), changed: make(chan struct{}),
		fetched: make(chan struct{}, mostReaders), latest: latest{series: encode(&series{}), grown: 1}}
	s.server = &http.Server{Handler: OwnHost(address, s), ReadHeaderTimeout: writeTimeout}
	s.active.Go(func() { _ = s.server.Serve(listen) }) // it ends when the server is closed
	s.drawing.Go(s.draw)
	return s, nil
}

// URL returns the address of the page, which contains a secret. Any browser that has the address can show the page.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/%s/", s.listen.Addr(), s.token) }

// Publish sets the snapshot that the page shows next. It does not block.
func (s *Server) Publish(snapshot *measure.Snapshot) { s.last.Store(snapshot) }

// Saved adds a link to the report of a run, which is in the file.
func (s *Server) Saved(name, file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, doneRun{name, fmt.Sprintf("run/%d", len(s.done)), file})
}

// Close ends the server. The argument page is the path of the report. If that file exists, open pages load it, and
// Close waits for them; the time farewell limits the wait.
func (s *Server) Close(ctx context.Context, page string) {
	close(s.stop)
	s.drawing.Wait()
	if _, err := os.Stat(page); err != nil {
		page = ""
	}
	s.mu.Lock()
	s.page, s.ended = page, true
	open := s.readers
	close(s.changed)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	for page != "" && open > 0 && ctx.Err() == nil {
		select {
		case <-s.fetched:
			open--
		case <-ctx.Done():
		}
	}
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close()
	}
	s.active.Wait()
}

// draw makes frames from the latest snapshot. At the end of the job it makes one from the last snapshot.
func (s *Server) draw() {
	next := time.Tick(frameEvery)
	var drawn *measure.Snapshot
	for over := false; !over; {
		select {
		case <-s.stop:
			over = true
		case <-next:
		}
		if last := s.last.Load(); last != drawn {
			drawn = last
			s.send(last)
		}
	}
}

// send makes a frame from a snapshot. Each page gets it, unless a newer frame is ready first.
func (s *Server) send(snapshot *measure.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.observe(snapshot) {
		s.series = encode(&s.log)
		s.grown++
	}
	s.frame = encode(newFrame(snapshot, s.done))
	s.frames++
	if !s.ended {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// ServeHTTP answers requests whose path begins with the secret token.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch h := w.Header(); {
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 0:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is read-only", http.StatusMethodNotAllowed)
	default:
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		s.answer(w, r, path)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	page, done := s.page, s.done
	s.mu.Unlock()
	switch {
	case path == "" && page != "":
		http.ServeFile(w, r, page)
		if r.Method == http.MethodGet {
			select {
			case s.fetched <- struct{}{}:
			default: // enough entries for all open pages
			}
		}
		return
	case path == "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = report.WriteLive(w) // an error does not matter: the browser has gone away
		return
	case path == "events":
		s.stream(w, r)
		return
	}
	for _, d := range done {
		if d.Link == path {
			http.ServeFile(w, r, d.file)
			return
		}
	}
	http.NotFound(w, r)
}

// stream sends events to one page, until the page is closed or the job has ended.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if err := s.enter(1); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = s.enter(-1) }()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	for sent := (latest{}); ; {
		s.mu.Lock()
		now, changed, end, page := s.latest, s.changed, s.ended, s.page
		s.mu.Unlock()
		err := out.SetWriteDeadline(time.Now().Add(writeTimeout))
		if now.grown > sent.grown && err == nil {
			_, err = fmt.Fprintf(w, "event: series\ndata: %s\n\n", now.series)
		}
		if now.frames > sent.frames && err == nil {
			_, err = fmt.Fprintf(w, "event: frame\ndata: %s\n\n", now.frame)
		}
		sent = now
		if end && err == nil {
			_, err = fmt.Fprintf(w, "event: end\ndata: {\"report\": %t}\n\n", page != "")
		}
		if err = errors.Join(err, out.Flush()); err != nil || end {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// enter adds the argument one, which is 1 or -1, to the number of open pages. It returns an error if no further page
// is accepted.
func (s *Server) enter(one int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case one > 0 && s.ended:
		return errors.New("the job has ended")
	case one > 0 && s.readers >= mostReaders:
		return fmt.Errorf("%d pages are open already", mostReaders)
	}
	s.readers += one
	return nil
}
