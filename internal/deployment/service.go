package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"hammerlock/internal/service"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Time limits for a service to become ready. readyEvery is the time between two tries, and readyAsk limits one
// request.
const (
	readyTimeout = 30 * time.Second
	readyEvery   = 20 * time.Millisecond
	readyAsk     = time.Second
	readyAnswers = 3 * time.Second // for a service that answers, but without a count: --field or --match may be wrong
)

// openService starts the programs of a service, if the suite is to start any, and waits until they are ready. It then
// reads the service's initial counts.
func (d *Deployment) openService(ctx context.Context) error {
	s := d.spec.Service
	d.Topology.Settings = s.Settings()
	for i, command := range s.Serve {
		p := &topologies.Program{Command: command, Env: s.Env}
		if i < len(s.Whole) {
			p.Whole = s.Whole[i]
		}
		if err := d.Topology.Run(p); err != nil {
			return err
		}
	}
	for _, p := range d.Topology.Programs() {
		p.Ready = func(ctx context.Context) error { return d.ready(ctx, s) }
	}
	if len(s.Serve) > 0 {
		if err := d.ready(ctx, s); err != nil {
			return err
		}
	}
	d.store.spec.Place = workload.InMemory // a service counts its own page views
	c, err := service.Open(ctx, *s, d.Pages, d.spec.Orders.Shape.Workers)
	if err == nil {
		d.store.counter = c
	}
	return err
}

// ready waits until all addresses accept connections, and the service returns the count of the first page. It returns
// an error if a program has ended, or if answers have lacked a count for the time readyAnswers.
func (d *Deployment) ready(ctx context.Context, s *service.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	end, _ := ctx.Deadline()
	asked := *s
	asked.Timeout = readyAsk
	again := time.Tick(readyEvery)
	wanted := 2 * len(s.Serve) // successes in a row, because a load balancer asks the programs in turn
	var unread time.Time       // since when answers have lacked a count; zero = they do not
	var last error             // error of the last try that was not cut off by the time limit
	for good := 0; ; {
		err := reached(ctx, s.Visit.URLs)
		if err == nil {
			var c *service.Service
			if c, err = service.Open(ctx, asked, d.Pages[:1], 1); err == nil {
				if err = c.Close(); err == nil {
					if good++; good > wanted {
						return nil
					}
					continue
				}
			}
		}
		good = 0
		if last == nil || time.Now().Before(end) {
			last = err
		}
		if _, answered := errors.AsType[service.Unreadable](err); !answered {
			unread = time.Time{}
		} else if unread.IsZero() {
			unread = time.Now()
		} else if time.Since(unread) > readyAnswers {
			return err
		}
		if why := d.ended(); len(why) > 0 {
			return errors.New(why[0])
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service is not ready after %s: %w", readyTimeout, last)
		case <-again:
		}
	}
}

// reached returns nil if the hosts of all addresses accept connections.
func reached(ctx context.Context, addresses []string) error {
	for _, address := range addresses {
		u, err := url.Parse(strings.ReplaceAll(address, service.PagePlace, "0"))
		if err != nil {
			return err
		}
		conn, err := (&net.Dialer{Timeout: readyAsk}).DialContext(ctx, "tcp",
			net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), u.Scheme)))
		if err != nil {
			return err
		}
		_ = conn.Close() // an error does not matter: nothing was sent
	}
	return nil
}

// ended describes those programs of the service that have ended unexpectedly.
func (d *Deployment) ended() (texts []string) {
	for _, p := range d.Topology.Programs() {
		if why := p.Ended(); why != "" {
			texts = append(texts, why)
		}
	}
	return texts
}
