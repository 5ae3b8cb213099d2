package cli

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/service"
	"hammerlock/internal/settings"
)

// visiting returns a copy of the plan that sends requests to a service, and uses no locks of the suite.
func visiting(p harness.Plan) harness.Plan {
	p.Topologies, p.Locks, p.Scenarios, p.Faults, p.Service = nil, nil, nil, []string{faults.None}, &service.Spec{}
	p.Processes, p.Fleet = 1, harness.Fleet{}
	w := &p.Workload
	w.TTL, w.Hold, w.Retry, w.Extend = 0, 0, 0, 0
	return p
}

func (o *options) serviceFlags() {
	p, s := &o.plan, o.plan.Service
	defer o.Begin(settings.Section{})
	o.Text(flag(setting, "name", "what results call the service (default: the path of its visits)"), "name", &s.Called)
	o.request(flag(setting, "visit", "the request that adds a page view: a method and addresses, blanks between;\n"+
		service.PagePlace+" is the number of the page, $TOKEN in a query an environment variable"), &s.Visit)
	o.request(flag(setting, "count", "the request that asks how many there are"), &s.Count)
	o.Text(flag(setting, "field",
		"where the count is in an answer in JSON, as in data.views (default: the answer is a number)"), "name",
		&s.Answer.Field)
	match := ""
	if s.Answer.Match != nil {
		match = s.Answer.Match.String()
	}
	o.Add(flag(setting, "match", "what finds the count in an answer: its first group, as in 'views: ([0-9]+)'"),
		"regexp", match, func(text string) (err error) {
			s.Answer.Match, err = regexp.Compile(text)
			return err
		})
	o.Toggle(flag(setting, "silent", "what a visit is answered is no count, although it looks like one"), "", &s.Silent)
	o.refusal(&s.Refusal)
	header := o.Add(flag(setting, "header",
		"a header of every request, as in 'X-Tenant: 7'; may be given several times. A secret comes from a variable\n"+
			"of the environment, as in 'Authorization: Bearer $TOKEN'"), "name: value", "", func(text string) error {
		h, err := service.ParseHeader(text)
		if err != nil { // the error omits the value, which may be a secret
			name, _, _ := strings.Cut(text, ":")
			o.Mistake("header", "%.40q: %v", name, err)
			return nil
		}
		s.Headers = append(s.Headers, h)
		return nil
	})
	header.Repeatable, header.Given = true, slices.Clone(s.Headers)
	serve := o.Add(flag(setting, "serve",
		"a command that starts the service, or a part of it; may be given several times"), "command", "",
		func(text string) error {
			if strings.TrimSpace(text) == "" {
				return errors.New("it is empty: it takes a command; or leave it out, if the service is up")
			}
			s.Serve = append(s.Serve, text)
			s.Whole = o.plan.Attach.Secrets.Whole("serve", s.Serve)
			return nil
		})
	serve.Repeatable, serve.Given = true, slices.Clone(s.Serve)
	o.Text(flag(setting, "wire",
		"the service's Redis is watched, so that a wrong count gets a cause: a topology to start for it, or the\n"+
			"address of a server, as in redis://10.0.0.1; what --serve starts finds it by $REDIS_URL"),
		"topology|url", &s.Wire.To)
	o.wirePatterns(&s.Wire.Locks, &s.Wire.Data, &s.Wire.Env)
	o.Names(flag(load, "fault",
		"what breaks of the programs: kill-program, pause-program, with @TIME and heal@TIME, as in\n"+
			"kill-program:2@2s,heal@4s"), &p.Faults, []string{"kill-program", "pause-program"})
	o.Begin(loadSection)
	o.Integer(flag(load, "burst", "just this many visits at once, in place of a load"), &s.Burst, harness.MostWorkers)
	o.loadFlags("a visit without an answer for so long is called off, and unknown")
	o.seed("repeats the schedule of another run (default: drawn and printed)")
	o.Begin(outputSection)
	o.out("where runs are saved")
}

func (o *options) request(f settings.Flag, to *service.Request) {
	o.Add(f, "request", to.String(), func(text string) (err error) {
		if *to, err = service.ParseRequest(text); err != nil { // the text may contain secrets
			o.Mistakes.Add(human.Wrong(f.Name, "%q: %s", service.Masked(text), service.Masked(err.Error())).In(text,
				""))
		}
		return nil
	})
}

func (o *options) refusal(to *[]int) {
	o.Add(flag(setting, "refusal",
		"statuses by which the service says that it has not counted the visit, as in 409,503"), "status,...",
		strings.Join(human.Names(*to, strconv.Itoa), ","), func(text string) error {
			*to = nil
			for _, item := range settings.Split(text) {
				status, err := strconv.Atoi(item)
				if err != nil || status < 300 || status > 599 {
					o.Mistake("refusal", "%.20s: a status from 300 to 599: a 2xx says that the visit was counted", item)
				}
				*to = append(*to, status)
			}
			return nil
		})
}

// burstSaid lists the flags whose values follow from --burst; none if the plan has no burst.
func burstSaid(p *harness.Plan) []string {
	if p.Service == nil || p.Service.Burst == 0 {
		return nil
	}
	return burstSays
}

// burstSays lists the flags that --burst replaces.
var burstSays = []string{"workers", "duration", "warmup", "think", "rate", "arrivals"}

// wirePatterns declares the flags with patterns of keys to watch, and with variables for the watched program.
func (o *options) wirePatterns(locks, data, env *[]string) {
	pattern := func(text string) error {
		if _, err := path.Match(text, ""); err != nil || text == "" {
			return errors.New("a pattern is as those of KEYS: lock:*")
		}
		return nil
	}
	variable := func(text string) error {
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			return errors.New("a variable is NAME=TEXT, as in CACHE_URL={url}")
		}
		return nil
	}
	many := func(name, kind, usage string, to *[]string, check func(string) error) {
		v := o.Add(flag(setting, name, usage), kind, "", func(text string) error {
			*to = append(*to, text)
			return check(text)
		})
		v.Repeatable, v.Given = true, slices.Clone(*to)
	}
	many("locks", "pattern", "the keys that are locks, as KEYS has patterns; may be given several times", locks,
		pattern)
	many("data", "pattern", "the keys that the locks guard: what is read and written under a lock shows lost updates",
		data, pattern)
	many("env", "name=text",
		"a variable that the command gets besides $REDIS_URL, with {url}, {host}, {port}, {urls}, {nodes}, "+
			"{sentinels} or {master} in it,\nas in DSN={host}:{port}; may be given several times", env, variable)
}

// httpPlan returns the default plan of the command "http", derived from the plan of its program.
func httpPlan(p harness.Plan) harness.Plan {
	p = visiting(p)
	p.Duration = harness.Default().Duration
	return p
}
