package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/service"
	"hammerlock/locks/catalogue"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// leastTTL returns the shortest lease that a plan may have. It is 0 for a service, whose leases the suite does not
// know.
func (p *Plan) leastTTL() time.Duration {
	if p.Service != nil {
		return 0
	}
	return 10 * time.Millisecond
}

// programs returns how many programs of a service the suite starts.
func (p *Plan) programs() int {
	if p.Service == nil {
		return 0
	}
	return len(p.Service.Serve)
}

// visitsOnly tells whether the plan only visits services, without locks of the suite.
func (p *Plan) visitsOnly() bool {
	return p.Service != nil || len(p.Topologies) == 0 && len(p.Services) > 0
}

// service checks a plan that visits a service, and returns its single combination. It returns nil if the plan visits
// no service.
func (c *check) service(ctx context.Context) []Combination {
	p, s := c.plan, c.plan.Service
	if s == nil {
		return nil
	}
	c.requests(s)
	if s.Answer.Field != "" && s.Answer.Match != nil {
		c.mistake("field", "and --match: an answer is read in one way")
	}
	own := s.Clone()
	for _, name := range own.Resolve(p.Getenv) {
		c.mistake("", "the variable %s is not set, which a header or a query names", name)
	}
	x := Combination{Topology: topologies.Outside, Lock: catalogue.Outside, Plan: p.visiting(own)}
	if len(own.Visit.URLs) > 0 {
		x.Lock.Name = own.Name()
	}
	x.watch = c.watch(ctx, s)
	all := []Combination{x}
	c.faults(all)
	return all
}

// visiting returns the plan of a run that visits the service s. If the service has a burst, the burst replaces the
// load of the plan.
func (p Plan) visiting(s *service.Spec) Plan {
	s.Timeout = p.Workload.Wait
	if w := &p.Workload; s.Burst > 0 {
		p.Phases, p.Warmup, p.Duration = nil, 0, w.Wait
		w.Workers, w.Visits, w.Rate, w.Trace = s.Burst, 1, 0, nil
	}
	p = p.phased()
	p.Counter, p.Service = workload.ServiceCounter, s
	return p
}

// The method services checks the plans that visit services. Each mistake gets the number of its service. The services
// must have different names, which results show.
func (c *check) services(ctx context.Context) (all []Combination) {
	known := map[string]bool{}
	for i := range c.plan.Services {
		p := &c.plan.Services[i]
		p.Out, p.Workload.Seed = c.plan.Out, c.plan.Workload.Seed
		one := check{plan: p}
		all = append(all, one.service(ctx)...)
		name := fmt.Sprint(i + 1)
		if len(p.Service.Visit.URLs) > 0 {
			name = p.Service.Name()
		}
		if known[name] {
			one.mistake("", "another service is called so: give it a name of its own, as in name: %s-2", name)
		}
		known[name] = true
		for _, m := range one.mistakes {
			if !slices.Contains(c.mistakes, m) { // the services share their load, so a mistake in it is reported once
				c.mistakes.Add(human.Mistake{Setting: "services", Item: fmt.Sprint(i + 1), Key: m.Setting,
					Text: fmt.Sprintf("services %d: %s", i+1, m.Text)})
			}
		}
	}
	return all
}

// The method requests checks the addresses of a service. Each page must have its own address.
func (c *check) requests(s *service.Spec) {
	for _, r := range []struct {
		flag    string
		request service.Request
	}{{"visit", s.Visit}, {"count", s.Count}} {
		if len(r.request.URLs) == 0 && slices.ContainsFunc(c.mistakes,
			func(m human.Mistake) bool { return m.Setting == r.flag }) {
			continue // an address was given, and its mistake was reported
		}
		if len(r.request.URLs) == 0 {
			c.mistake(r.flag,
				"is missing: a request, as in --visit 'POST http://127.0.0.1:8080/pview' --count 'GET "+
					"http://127.0.0.1:8080/pview'")
			continue
		}
		for _, u := range r.request.URLs {
			if paged := strings.Contains(u, service.PagePlace); paged != (c.plan.Workload.Keys > 1) {
				c.mistake(r.flag, "%s: with --pages above 1, and only then, %s stands for the number of the page", u,
					service.PagePlace)
			}
		}
	}
	if len(s.Count.URLs) > 1 {
		c.mistake("count", ": one address says how many page views there are")
	}
}
