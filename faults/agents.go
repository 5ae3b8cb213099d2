package faults

import (
	"context"
	"fmt"
	"time"

	"hammerlock/history"
)

// Agent is a machine whose workers take part in a run.
type Agent struct {
	Name  string
	Kill  func() error              // kills the agent's process and its worker process
	Pause func(time.Duration) error // stops both processes for this time
	Cut   func(cut bool) error      // cuts the network between its workers and all servers; false restores it
}

var killAgent = Fault{
	Name: "kill-agent",
	Doc: "an agent is killed, with its workers, with a lock in its hands, and does not come back; " +
		"what it has not sent is lost",
	Unavailable: func(s Scene) string {
		return s.agents("needs --allow-lost: what a killed agent has not sent is lost", s.AllowLost)
	},
	Effect: always(hits(history.Clients)),
	breaks: crashWorker.breaks,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		caught, a, err := t.agent(ctx)
		if err != nil {
			return "", nil, err
		}
		if err = a.Kill(); err != nil {
			caught.Go()
		} // the agent may still be alive, so its worker goes on
		return fmt.Sprintf("killed agent %s with w%02d %s", a.Name, caught.Worker, caught.where()), nil, err
	},
}

var pauseAgent = Fault{
	Name: "pause-agent",
	Doc: "an agent and its workers are stopped (SIGSTOP) with a lock in their hands for longer than the lease: " +
		"a machine that is suspended",
	Unavailable: func(s Scene) string {
		return s.agents(fmt.Sprintf("lasts %s, and an agent that is silent for %s is lost: "+
			"give a longer --agent-timeout, or a shorter --lease",
			stallLasts.of(s.TTL), s.Silence), stallLasts.of(s.TTL) < s.Silence*3/4)
	},
	Effect: always(hits(history.Clients)),
	breaks: lateHolder,
	lasts:  stallLasts,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		caught, a, err := t.agent(ctx)
		if err != nil {
			return "", nil, err
		}
		defer caught.Go()
		lasting := stallLasts.of(t.TTL)
		if err := a.Pause(lasting); err != nil {
			return "", nil, err
		}
		sleep(ctx, lasting)
		return fmt.Sprintf("stopped agent %s with w%02d %s for %s", a.Name, caught.Worker, caught.where(), lasting),
			nil, nil
	},
}

var cutAgent = Fault{
	Name: "cut-agent",
	Doc: "the workers of an agent, one of which was just granted a lock, " +
		"are cut from all servers until it is healed",
	Unavailable: func(s Scene) string { return s.agents("", true) },
	Effect:      cutHolder.Effect,
	Inject: holding(Granted, func(_ context.Context, t *Target, caught *Caught) (string, Heal, error) {
		a, err := t.Workers.Agent(caught.Worker)
		if err == nil {
			err = a.Cut(true)
		}
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("cut agent %s, with w%02d %s, from all servers", a.Name, caught.Worker, caught.where()),
			func(context.Context) error { return a.Cut(false) }, nil
	}),
}

// agents returns the reason why a fault that disturbs agents cannot be injected: either the run has no agents, or ok
// is false. In the second case, it returns the caller's reason. An empty text means that the fault can be injected.
func (s Scene) agents(why string, ok bool) string {
	switch {
	case s.Agents == 0:
		return "needs workers on agents: --agents"
	case !ok:
		return why
	}
	return ""
}

// agent stops a worker between the load and the store of its counter. It returns the worker and the worker's agent.
func (t *Target) agent(ctx context.Context) (*Caught, Agent, error) {
	caught, err := t.holder(ctx, Loaded)
	if err != nil {
		return nil, Agent{}, err
	}
	a, err := t.Workers.Agent(caught.Worker)
	if err != nil {
		caught.Go()
	}
	return caught, a, err
}
