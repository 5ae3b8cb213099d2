// Package service visits, over HTTP like a client, a service that does its own locking. It knows only addresses and
// how to read a count from an answer.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Spec says how to visit a service.
type Spec struct {
	Called  string        // name in results; empty = the path of the visits
	Visit   Request       // adds one page view
	Count   Request       // asks for the number of page views
	Answer  Answer        // how to read a count from an answer
	Silent  bool          // a visit's answer has no count and is not read
	Refusal []int         // statuses that mean that a visit was not counted
	Timeout time.Duration // limit for a request
	Burst   int           // number of simultaneous visits, which replace the load; 0 = there is a load
	Serve   []string      // commands that start the service, without passwords
	Whole   []string      `json:"-"` // the same commands with passwords
	Headers []string      // headers of every request, in the form of ParseHeader
	Wire    Wire
	Env     []string // additional variables of the commands

	header http.Header       // with the variables filled in
	sent   map[string]string // original address -> address with the variables of its query filled in
	hidden []string          // values of variables, each with its name
}

// Wire says which traffic between service and Redis is watched.
type Wire struct {
	To               string // topology to start for the service, or address of a server; empty = nothing is watched
	Locks, Data, Env []string
}

// Request is a method and its addresses; each worker uses one of them.
type Request struct {
	Method string
	URLs   []string // PagePlace stands for the page number
}

// PagePlace stands for the page number in an address.
const PagePlace = "{page}"

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodHead, http.MethodOptions}

// ParseRequest parses a method and one or several addresses: "POST http://127.0.0.1:8080/pview".
func ParseRequest(text string) (r Request, err error) {
	words := strings.Fields(text)
	if len(words) < 2 || strings.ContainsAny(words[0], ":/") {
		return r, errors.New("a request is a method and an address, as in 'POST http://127.0.0.1:8080/pview'; " +
			"several addresses with blanks in between")
	}
	r.Method = strings.ToUpper(words[0])
	if !slices.Contains(methods, r.Method) {
		return r, errors.New("the methods are " + strings.Join(methods, ", "))
	}
	for _, word := range words[1:] {
		u, err := url.Parse(word)
		switch {
		case err != nil && !strings.Contains(word, "://"):
			return r, fmt.Errorf("%q: an address begins with http:// or https:// and a host", word)
		case err != nil && !strings.Contains(word, "@"):
			return r, err
		case err != nil || u.User != nil:
			return r,
				errors.New("an address with a user or a password would be shown to everybody: " +
					"leave out what ends with @, and see --header")
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return r, fmt.Errorf("%q: an address begins with http:// or https:// and a host", word)
		case secretQuery(u) != "":
			return r,
				fmt.Errorf("the value of %s would be saved and shown: put it into a variable of the environment, "+
					"as in %s=$TOKEN", secretQuery(u), secretQuery(u))
		}
		r.URLs = append(r.URLs, word)
	}
	return r, nil
}

// String is the request in the form of ParseRequest; empty for none.
func (r Request) String() string {
	return strings.TrimSpace(r.Method + " " + strings.Join(r.URLs, " "))
}

// Name is the name of the service in results.
func (s *Spec) Name() string {
	if s.Called != "" {
		return s.Called
	}
	u, err := url.Parse(strings.ReplaceAll(s.Visit.URLs[0], PagePlace, "0"))
	if err != nil {
		return "service"
	}
	name := strings.FieldsFunc(u.Path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
	})
	if len(name) == 0 {
		return "service"
	}
	return strings.Join(name, "-")
}

// Settings describe the service in the record of a run.
func (s *Spec) Settings() map[string]string {
	m := map[string]string{"visit": s.Visit.String(), "count": s.Count.String()}
	for i, header := range s.Headers {
		m[fmt.Sprintf("header%d", i+1)] = header
	}
	for i, command := range s.Serve {
		m[fmt.Sprintf("program%d", i+1)] = command
	}
	return m
}

// Service is the service under test, as workers visit it. Many workers may do so concurrently. As a counter it
// returns the page views since Open.
type Service struct {
	spec   Spec
	client *http.Client
	pages  map[string]int32 // name of the page's counter -> page
	base   []int64          // initial count, indexed by page
}

// Open asks for the initial counts of the pages. It keeps at most as many idle connections as there are workers.
func Open(ctx context.Context, s Spec, pages []workload.Page, workers int) (*Service, error) {
	dialer := &net.Dialer{Timeout: s.Timeout}
	c := &Service{spec: s, pages: map[string]int32{}, base: make([]int64, len(pages)), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: workers, IdleConnTimeout: idleTimeout, DisableCompression: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, addr)
				if err != nil {
					err = fmt.Errorf("%w: %w", topologies.ErrUnreachable, err) // nothing was sent
				}
				return conn, err
			},
		},
	}}
	for key, page := range pages {
		n, err := c.count(ctx, int32(key))
		if err != nil {
			c.client.CloseIdleConnections()
			return nil, err
		}
		c.pages[page.Views], c.base[key] = int32(key), n
	}
	return c, nil
}

// idleTimeout is shorter than the idle timeout of servers. Otherwise a server could close a connection just when it
// is used again.
const idleTimeout = 2 * time.Second

// Unreadable means that the service answered, and that the answer has no count.
type Unreadable struct{ error }

func (c *Service) count(ctx context.Context, key int32) (int64, error) {
	body, _, err := c.do(ctx, &c.spec.Count, 0, key)
	n := int64(0)
	if err == nil {
		if n, err = c.spec.Answer.read(body); err != nil {
			err = Unreadable{err}
		}
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the count (%s): %w", c.spec.Count, err)
	}
	return n, nil
}

// Visit sends one visit. It returns the page views since Open, or 0 if the answer has no count. If it returns an
// error, the number is the status of the answer, or 0 if there was none. After an error the visit certainly did not
// count in two cases: no connection was made, or the service refused the visit. Otherwise it may have counted.
func (c *Service) Visit(ctx context.Context, worker int, key int32) (int64, error) {
	body, status, err := c.do(ctx, &c.spec.Visit, worker, key)
	if err != nil {
		return int64(status), err
	}
	if c.spec.Silent {
		return 0, nil
	}
	n, err := c.spec.Answer.read(body)
	if err != nil {
		return 0, nil // the answer has no count
	}
	return n - c.base[key], nil
}

// mostBody is the limit in bytes for reading an answer.
const mostBody = 1 << 20

// do sends a request and returns the body of a successful answer (status 2xx). The status is 0 if no
// whole answer arrived.
func (c *Service) do(ctx context.Context, r *Request, worker int, key int32) (body []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.spec.Timeout)
	defer cancel()
	address := r.URLs[worker%len(r.URLs)]
	at := strings.ReplaceAll(cmp.Or(c.spec.sent[address], address), PagePlace, strconv.Itoa(int(key)))
	req, err := http.NewRequestWithContext(ctx, r.Method, at, unrepeatable(r.Method))
	if err != nil {
		return nil, 0, shown(err, address)
	}
	maps.Copy(req.Header, c.spec.header)
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, 0, shown(err, address)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, mostBody))
	err = errors.Join(err, res.Body.Close())
	switch {
	case slices.Contains(c.spec.Refusal, res.StatusCode):
		return nil, res.StatusCode, fmt.Errorf("%w: %w", locks.ErrRefused, c.spec.unsuccessful(res.Status, body))
	case err != nil:
		return nil, 0, err
	case res.StatusCode/100 != 2:
		return nil, res.StatusCode, c.spec.unsuccessful(res.Status, body)
	}
	return body, res.StatusCode, nil
}

// unsuccessful describes an answer by its status and the beginning of its body, without the values of variables.
func (s *Spec) unsuccessful(status string, body []byte) error {
	return fmt.Errorf("status %s: %.60q", status, strings.NewReplacer(s.hidden...).Replace(string(body)))
}

// shown replaces the address in an error by the one in which variables are not filled in.
func shown(err error, address string) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		e.URL = address
	}
	return err
}

// unrepeatable returns a body that stops the HTTP client from repeating a request; nil if it is not needed. The
// client repeats requests of safe methods if the connection breaks, but a visit must not count twice. The body is
// empty, and its length is not announced.
func unrepeatable(method string) io.Reader {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return io.MultiReader()
	}
	return nil // other methods are not repeated
}

// Load asks for the page views since Open.
func (c *Service) Load(ctx context.Context, page string) (workload.Count, error) {
	key := c.pages[page]
	n, err := c.count(ctx, key)
	return workload.Count{Views: n - c.base[key]}, err
}

// Store fails: a service counts by itself.
func (*Service) Store(context.Context, string, workload.Count) error {
	return errors.New("a service does its own counting")
}

// Close closes the idle connections.
func (c *Service) Close() error {
	c.client.CloseIdleConnections()
	return nil
}
