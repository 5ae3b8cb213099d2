// Package web shows a job that goes on as a page: the report's charts and strip, fed by server-sent events. It is
// read-only, and the job never waits for it: it draws the latest snapshot, and who reads too slowly misses some. Its
// memory has an upper bound.
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
	mostReaders = 32 // pages that are open at the same time
	// farewell is how long the end of a job waits for the open pages to become the report.
	farewell     = 3 * time.Second
	writeTimeout = 10 * time.Second // of one frame, to a reader that does not read
)

// Server serves one job.
type Server struct {
	token  string
	listen net.Listener
	server *http.Server
	active sync.WaitGroup
	last   atomic.Pointer[measure.Snapshot]
	stop   chan struct{}

	mu      sync.Mutex
	readers int
	changed chan struct{} // is closed when there is something new
	log     series
	latest
	done    []doneRun     // that were saved
	page    string        // what the page has become at the end: a file; empty while the job goes on
	ended   bool          // no reader comes any more
	fetched chan struct{} // pages that were asked for after the end
}

// doneRun is a run that was saved.
type doneRun struct {
	Name string `json:"name"`
	Link string `json:"link"`
	file string
}

// latest is the newest event of each kind; frames and grown count them.
type latest struct {
	frame, series []byte
	frames, grown int
}

// Start listens, and serves from now on.
func Start(address string) (*Server, error) {
	listen, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{token: rand.Text(), listen: listen, stop: make(chan struct{}), changed: make(chan struct{}),
		fetched: make(chan struct{}, mostReaders), latest: latest{series: encode(&series{}), grown: 1}}
	s.server = &http.Server{Handler: OwnHost(address, s), ReadHeaderTimeout: writeTimeout}
	s.active.Go(func() { _ = s.server.Serve(listen) }) // it ends when the server is closed
	s.active.Go(s.draw)
	return s, nil
}

// URL is where the page is. Whoever knows it can read the page; nobody can change anything.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/%s/", s.listen.Addr(), s.token) }

// Publish shows a snapshot from now on. It does not wait.
func (s *Server) Publish(snapshot *measure.Snapshot) { s.last.Store(snapshot) }

// Saved links to the report of a run.
func (s *Server) Saved(name, file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, doneRun{name, fmt.Sprintf("run/%d", len(s.done)), file})
}

// Close ends the serving. The open pages become the report in a file, if there is one, and are waited for a moment.
func (s *Server) Close(ctx context.Context, page string) {
	close(s.stop)
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

// draw makes frames of the latest snapshot.
func (s *Server) draw() {
	next := time.Tick(frameEvery)
	var drawn *measure.Snapshot
	for {
		select {
		case <-s.stop:
			return
		case <-next:
		}
		if last := s.last.Load(); last != drawn {
			drawn = last
			s.send(last)
		}
	}
}

// send offers a frame to every reader, in place of one that was not sent yet.
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

// ServeHTTP answers requests that have the token.
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
			default: // more than there are readers
			}
		}
		return
	case path == "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = report.WriteLive(w) // a reader that went away needs no page
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

// stream sends events until the reader goes away or the job has ended.
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

// enter adds a reader, or takes one away.
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
