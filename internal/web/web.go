// Package web shows a job that goes on as a page: the report's charts and strip, fed by server-sent events. It is read-only, and
// the job never waits for it: it draws the latest snapshot, and who reads too slowly misses some. What it keeps has an upper bound.
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
	readers map[*reader]bool
	log     series
	frame   []byte        // the latest
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

// reader is an open page: the events that it was not sent yet, the latest of each kind.
type reader struct {
	frame, series []byte
	end           bool
	fresh         chan struct{}
}

// Start listens, and serves from now on.
func Start(address string) (*Server, error) {
	listen, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{token: rand.Text(), listen: listen, stop: make(chan struct{}), readers: map[*reader]bool{}, fetched: make(chan struct{}, mostReaders)}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: writeTimeout}
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
	open := len(s.readers)
	for r := range s.readers {
		r.end = true
		r.wake()
	}
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

// send hands a frame to every reader, in place of one that was not sent yet.
func (s *Server) send(snapshot *measure.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := s.log.observe(snapshot)
	s.frame = encode(newFrame(snapshot, s.done))
	var seconds []byte
	if grown {
		seconds = encode(&s.log)
	}
	for r := range s.readers {
		r.frame = s.frame
		if grown {
			r.series = seconds
		}
		r.wake()
	}
}

func (r *reader) wake() {
	select {
	case r.fresh <- struct{}{}:
	default: // it is awake
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
	me, err := s.enter()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.leave(me)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	for {
		s.mu.Lock()
		frame, series, end, page := me.frame, me.series, me.end, s.page
		me.frame, me.series = nil, nil
		s.mu.Unlock()
		err := out.SetWriteDeadline(time.Now().Add(writeTimeout))
		for _, e := range []struct {
			name string
			data []byte
		}{{"series", series}, {"frame", frame}} {
			if e.data != nil && err == nil {
				_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, e.data)
			}
		}
		if end && err == nil {
			_, err = fmt.Fprintf(w, "event: end\ndata: {\"report\": %t}\n\n", page != "")
		}
		if err = errors.Join(err, out.Flush()); err != nil || end {
			return
		}
		select {
		case <-me.fresh:
		case <-r.Context().Done():
			return
		}
	}
}

// enter adds a reader and sends it the latest frame.
func (s *Server) enter() (*reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, errors.New("the job has ended")
	case len(s.readers) >= mostReaders:
		return nil, fmt.Errorf("%d pages are open already", mostReaders)
	}
	r := &reader{frame: s.frame, series: encode(&s.log), fresh: make(chan struct{}, 1)}
	s.readers[r] = true
	return r, nil
}

func (s *Server) leave(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, r)
}
