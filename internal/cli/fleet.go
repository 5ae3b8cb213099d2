package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/crew"
	"hammerlock/internal/fleet"
	"hammerlock/internal/harness"
	"hammerlock/internal/settings"
)

// localAgents is a prefix of the value of --agents. With it, as in local:3, the agents are processes on this machine.
const localAgents = "local:"

// mostAgents is the limit of --agents, so that a typing error does not overload the machine.
const mostAgents = 256

func (o *options) fleetFlags() {
	f := &o.fleet
	o.agentsFlag("n|name,...", o.agents,
		"let agents do the work: how many are waited for, or their names, as in a,b,c;\n"+
			"local:N starts N of them on this machine; see agent --help and docs/FLEET.md")
	o.Text(flag(session, "listen", "with --agents: where they join (default: 127.0.0.1:4222, any port for local ones)"),
		"host:port", &f.listen)
	o.Text(flag(session, "token-file", "with --agents: a file with the token that they need, too"), "path",
		&f.tokenFile)
	o.nats(flag(session, "nats",
		"with --agents: NATS servers that agents join, too, in place of --listen; with --creds"), &f.NATS)
	o.login(&f.Login)
	o.Duration(flag(session, "join-timeout", "with --agents: how long they are waited for"), &f.Join)
	o.Duration(flag(session, "agent-timeout", "with --agents: an agent that is silent for so long is lost"), &f.Timeout)
	o.Toggle(flag(session, "allow-lost",
		"with --agents: a run that has lost some of them is judged by what is known of the others"), "",
		&o.plan.Fleet.AllowLost)
	o.Duration(flag(session, "max-slack", "with --agents: by how much two clocks may seem to differ at most"),
		&f.MaxSlack)
}

func (o *options) agentsFlag(kind string, read func(string) error, usage string) {
	o.fleet.Join, o.fleet.Timeout, o.fleet.MaxSlack = time.Minute, 10*time.Second, 5*time.Millisecond
	o.Add(flag(session, "agents", usage), kind, "", read)
}

// agents parses the value of --agents: a number, local: with a number, or names.
func (o *options) agents(text string) error {
	p, f := &o.plan.Fleet, &o.fleet
	count, local := strings.CutPrefix(text, localAgents)
	n, err := strconv.Atoi(count)
	names := settings.Split(text)
	switch {
	case err == nil && (n < 1 || n > mostAgents) || local && err != nil:
		return fmt.Errorf("from 1 to %d, or names", mostAgents)
	case err != nil && len(names) == 0:
		return errors.New("how many, or their names")
	case err != nil && len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names):
		return errors.New("each name once: an agent is waited for by its name")
	case err != nil:
		n, f.Names = len(names), names
	}
	f.Count, f.Local = n, local
	p.Agents, p.Count, p.Local = text, n, local
	return nil
}

// agentsSaid lists the flags whose values follow from --agents.
func agentsSaid(p *harness.Plan) []string {
	if p.Fleet.Count == 0 {
		return nil
	}
	return []string{"processes"} // each agent has one process
}

// coordinator returns the flags about agents that a command line needs to repeat the plan.
func coordinator(p *harness.Plan) (args []string) {
	if p.Fleet.Agents != "" {
		args = append(args, "--agents", p.Fleet.Agents)
	}
	if p.Fleet.AllowLost {
		args = append(args, "--allow-lost")
	}
	return args
}

// coordinate lets agents run the workers of a plan, if the plan has agents. It only prepares this: the first run
// starts the coordinator, after the plan was checked. Call end after the last run.
func (e Env) coordinate(o *options) (end func()) {
	var f *fleet.Fleet
	if o.plan.Fleet.Agents == "" {
		for _, name := range []string{"listen", "token-file", "nats", "creds", "nats-ca", "join-timeout",
			"agent-timeout", "allow-lost", "max-slack"} {
			if o.Value("agents") != nil && o.Differs(name) {
				o.Mistake(name, ": it is about agents: add --agents")
			}
		}
		return func() {}
	}
	o.readFleet(e)
	o.plan.Fleet.Crew = func(ctx context.Context, orders crew.Orders, spawn crew.Spawn) (_ crew.Crew, err error) {
		if f == nil {
			if f, err = fleet.Open(o.fleet.Options); err != nil {
				return nil, err
			}
			if !o.fleet.Local {
				o.fleet.Say("to join: bench agent --join " + f.Address() + o.fleet.entry())
			}
		}
		return f.Crew(ctx, orders, spawn)
	}
	return func() {
		if f != nil {
			f.Close()
		}
	}
}

// readFleet completes the settings of a coordinator, and reports mistakes in its flags.
func (o *options) readFleet(e Env) {
	f := &o.fleet
	f.Version, o.plan.Fleet.Silence = harness.Version(), f.Timeout
	f.Say = func(line string) {
		if !o.quiet {
			e.lines("agents:", errors.New(line))
		}
	}
	f.Listen = cmp.Or(f.listen, "127.0.0.1:4222")
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{{"join-timeout", f.Join, time.Second}, {"agent-timeout", f.Timeout, 2 * time.Second},
		{"max-slack", f.MaxSlack, 20 * time.Microsecond}} {
		if d.value < d.least {
			o.Mistake(d.flag, "%s: at least %s", d.value, d.least)
		}
	}
	if _, _, err := net.SplitHostPort(f.Listen); err != nil {
		o.Mistake("listen", "%q: an address, as in 10.0.0.1:4222", f.Listen)
	}
	switch {
	case f.Local && (f.listen != "" || f.tokenFile != "" || f.NATS != ""):
		o.Mistake("agents", "%s: agents that are started here need no --listen, no --nats and no --token-file",
			o.plan.Fleet.Agents)
	case f.Local:
		f.Listen, f.Token = "127.0.0.1:0", fleet.NewToken()
	case (f.NATS == "") != (f.Login.Creds == ""):
		o.Mistake("nats", "and --creds need each other: where NATS servers are, and a file of credentials for them")
	case f.NATS != "" && f.listen != "":
		o.Mistake("listen", "and --nats: agents join either this command or servers of others")
	case f.NATS != "" && f.tokenFile == "":
	case f.tokenFile == "":
		o.Mistake("agents",
			"needs --token-file: a secret that agents have, too; to make one: openssl rand -hex 24 > token")
	default:
		var err error
		if f.Token, err = fleet.ReadToken(f.tokenFile); err != nil {
			o.Mistake("token-file", "%s: %v", f.tokenFile, err)
		}
	}
}

// nats declares a flag that takes addresses of NATS servers, separated by commas.
func (o *options) nats(f settings.Flag, to *string) {
	o.Add(f, "url", "", func(text string) error {
		for _, at := range settings.Split(cmp.Or(text, "://")) {
			u, err := url.Parse(at)
			if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" {
				return errors.New("an address is nats://HOST:PORT or tls://HOST:PORT, as in nats://10.0.0.1:4222")
			}
		}
		*to = text
		return nil
	})
}

// login declares the flags for NATS servers that exist already.
func (o *options) login(l *fleet.Login) {
	o.Text(flag(session, "creds",
		"a file of credentials for NATS servers of others, which have TLS; then a token only names the fleet"), "path",
		&l.Creds)
	o.Text(flag(session, "nats-ca",
		"with --creds: a file of certificates to know the servers by (default: the system's)"), "path", &l.CA)
}

// entry returns the flags that an agent must be given to join this coordinator.
func (f *fleetFlags) entry() (flags string) {
	for _, x := range []struct{ flag, file string }{{"creds", f.Login.Creds}, {"nats-ca", f.Login.CA},
		{"token-file", f.tokenFile}} {
		if x.file != "" {
			flags += " --" + x.flag + " " + quote(x.file)
		}
	}
	return flags
}
