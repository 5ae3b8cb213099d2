// Command driver runs a lock of a Go library behind Hammerlock's protocol (docs/DRIVERS.md). It is a module of its
// own, so that you can try any release of a library: go get github.com/bsm/redislock@v0.9.0, then go build. The code
// for the library is in lock.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// request is a message from the suite.
type request struct {
	ID     uint64 `json:"id"`
	Op     string `json:"op"`
	Worker int    `json:"worker"`
	Key    string `json:"key"`
	TTL    int64  `json:"ttl_ms"`
	Wait   int64  `json:"wait_ms"`
	Hold   uint64 `json:"hold"`
	Of     uint64 `json:"of"`
	Sites  []site `json:"sites"`
}

type site struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	User     string `json:"user"`
	Password string `json:"pass"`
	DB       int    `json:"db"`
}

func (s site) addr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// greeting returns the hello message of a driver. The argument name is that of the lock; module is the library's Go
// module.
func greeting(name, module string, topologies []string, claims ...string) map[string]any {
	return map[string]any{"hello": "hammerlock-driver", "protocol": 1, "name": name, "version": version(module),
		"claims": claims, "topologies": topologies}
}

// A lock is dated if it knows the end of its lease. It is hearing if it learns that it was lost.
type (
	dated   interface{ until() time.Time }
	hearing interface{ lost() <-chan struct{} }
)

// answer is a reply to the suite. Exactly one of OK, Busy, Lost and Error is set.
type answer struct {
	ID    uint64  `json:"id"`
	OK    bool    `json:"ok,omitempty"`
	Busy  bool    `json:"busy,omitempty"`
	Lost  bool    `json:"lost,omitempty"`
	Error string  `json:"error,omitempty"`
	Token string  `json:"token,omitempty"`
	Fence int64   `json:"fence,omitempty"`
	Valid float64 `json:"valid_ms,omitempty"`
	Tried float64 `json:"tried_ms,omitempty"`
}

// server answers requests, each in a goroutine. A goroutine that is done takes the next request.
type server struct {
	out  *os.File
	jobs chan *request

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // by request
	holds   map[uint64]*lock              // by the id of the request that acquired

	saying  sync.Mutex
	lines   []byte // answers to write
	writing bool   // a goroutine is writing, and will write them
}

func main() {
	s := &server{out: os.Stdout, jobs: make(chan *request), cancels: map[uint64]context.CancelFunc{},
		holds: map[uint64]*lock{}}
	os.Stdout = os.Stderr // libraries print to standard error: standard output is for answers
	s.say(hello(slices.Contains(os.Args, "waits")))
	_ = syscall.SetNonblock(0, true) // Go can then wait for input without blocking a thread, which is faster
	lines := bufio.NewScanner(input{os.NewFile(0, "requests")})
	for lines.Scan() {
		r := new(request)
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			panic(err)
		}
		if r.Op == "ping" {
			s.say(answer{ID: r.ID, OK: true})
			continue
		}
		select {
		case s.jobs <- r:
		default:
			go s.work(r)
		}
	}
}

// work answers a request, and then the next ones. A goroutine that goes on is faster than a new one, whose stack
// would have to grow.
func (s *server) work(r *request) {
	ctx, cancel := context.WithCancel(context.Background())
	for ; ; r = <-s.jobs {
		if ctx.Err() != nil {
			ctx, cancel = context.WithCancel(context.Background())
		}
		s.mu.Lock()
		s.cancels[r.ID] = cancel
		s.mu.Unlock()
		s.say(s.serve(ctx, r))
		s.mu.Lock()
		delete(s.cancels, r.ID)
		s.mu.Unlock()
		if l, ok := any(s.hold(r.ID, false)).(hearing); ok && r.Op == "acquire" && s.hold(r.ID, false) != nil {
			go s.hear(l, r.ID)
		}
	}
}

// hear waits until a hold is lost, and reports it unless the hold was released before.
func (s *server) hear(l hearing, id uint64) {
	<-l.lost()
	if s.hold(id, false) != nil {
		s.say(map[string]any{"event": "lost", "hold": id, "error": "the library says that the hold is lost"})
	}
}

// input lets running calls go on before each read. By then more requests may have come, and one read gets all of
// them.
type input struct{ *os.File }

func (i input) Read(b []byte) (int, error) {
	runtime.Gosched()
	return i.File.Read(b)
}

// say queues a message. The goroutine that writes takes all queued messages with one call: a write for each message
// would take longer than a call of the lock.
func (s *server) say(message any) {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	s.saying.Lock()
	s.lines = append(append(s.lines, text...), '\n')
	first := !s.writing
	s.writing = true
	s.saying.Unlock()
	if !first {
		return
	}
	runtime.Gosched() // calls that end at the same time answer with one write
	for spare := []byte(nil); ; {
		s.saying.Lock()
		lines := s.lines
		s.lines, s.writing = spare, len(lines) > 0
		s.saying.Unlock()
		if len(lines) == 0 {
			return
		}
		_, _ = s.out.Write(lines) // an error means that the suite has ended
		spare = lines[:0]
	}
}

func (s *server) serve(ctx context.Context, r *request) answer {
	a := answer{ID: r.ID}
	ttl := time.Duration(r.TTL) * time.Millisecond
	switch r.Op {
	case "open":
		return a.outcome(open(ctx, r.Sites))
	case "cancel":
		s.mu.Lock()
		if cancel := s.cancels[r.Of]; cancel != nil {
			cancel()
		}
		s.mu.Unlock()
	case "acquire":
		call := time.Now()
		l, err := acquire(ctx, r.Key, ttl, time.Duration(r.Wait)*time.Millisecond)
		if err != nil {
			return a.outcome(err)
		}
		s.mu.Lock()
		s.holds[r.ID] = l
		s.mu.Unlock()
		a.Token, a.Valid = l.token(), left(l, call)
		if r.Wait > 0 {
			a.Tried = float64(l.tried.Sub(call)) / float64(time.Millisecond)
		}
	case "extend":
		call, l := time.Now(), s.hold(r.Hold, false)
		if a = a.outcome(l.extend(ctx, ttl)); a.OK {
			a.Valid = left(l, call)
		}
		return a
	case "release":
		return a.outcome(s.hold(r.Hold, true).release(ctx))
	}
	a.OK = true
	return a
}

// left returns for how many milliseconds after the time call the lock is held, as the library says; 0 = it does not
// say.
func left(l *lock, call time.Time) float64 {
	if d, ok := any(l).(dated); ok && !d.until().IsZero() {
		return max(float64(d.until().Sub(call))/float64(time.Millisecond), 0.001)
	}
	return 0
}

func (s *server) hold(id uint64, last bool) *lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.holds[id]
	if last {
		delete(s.holds, id)
	}
	return l
}

// After errBusy and errLost the call certainly had no effect.
var (
	errBusy = errors.New("busy")
	errLost = errors.New("lost")
)

// outcome adds the result of a call to the answer. Any error but errBusy and errLost means that the call may have
// had an effect.
func (a answer) outcome(err error) answer {
	switch err {
	case nil:
		a.OK = true
	case errBusy:
		a.Busy = true
	case errLost:
		a.Lost = true
	default:
		a.Error = err.Error()
	}
	return a
}

// version returns the version of a module that this program was built with.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "unknown"
}
