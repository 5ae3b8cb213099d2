package faults

import (
	"context"
	"fmt"

	"hammerlock/history"
)

// stallLasts is the time for which a worker or its process is paused: 1.3 leases.
var stallLasts = length{leases: 1.3}

// lateHolder returns the assumption that a pause longer than the lease violates: the holder is done before its
// lease ends. It returns an empty text if holders do not store after their deadline.
var lateHolder = When(func(s Scene) bool { return !s.HeedDeadline }, slowHolder)

var stallWorker = Fault{
	Name:   "stall-worker",
	Arg:    timeOf("for how long, as in stall-worker:50ms"),
	Doc:    "a worker is held between load and store for longer than its lease (stall-worker:50ms: for so long)",
	Effect: always(hits(history.Holders)),
	breaks: lateHolder,
	lasts:  stallLasts,
	Inject: holding(Loaded, func(ctx context.Context, t *Target, caught *Caught) (string, Heal, error) {
		lasting := t.time(stallLasts.of(t.TTL))
		sleep(ctx, lasting)
		return fmt.Sprintf("held w%02d %s for %s", caught.Worker, caught.where(), lasting), nil, nil
	}),
}

var crashWorker = Fault{
	Name:        "crash-worker",
	Doc:         "a worker dies between load and store: it never releases",
	Unavailable: diesAlone,
	Effect:      always(hits(history.Holders)),
	breaks: When(func(s Scene) bool { return !s.Claims.Expires },
		"a holder that dies is never missed: the lock has no lease"),
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		caught, err := t.holder(ctx, Loaded)
		if err != nil {
			return "", nil, err
		}
		caught.Die()
		return fmt.Sprintf("w%02d died %s", caught.Worker, caught.where()), nil, nil
	},
}

// diesAlone returns the reason why a worker cannot die without its process. If the lock outlives its worker, the
// process would go on holding it. An empty text means that a worker can die alone.
var diesAlone = When(func(s Scene) bool { return s.Outlives },
	"what a worker that died holds in its process lives on: only the end of its process is a crash, "+
		"as in kill-process with --processes 2")

var stopProcess = Fault{
	Name: "stop-process",
	Doc: "a worker process is stopped (SIGSTOP) with a lock in its hands for longer than the lease: " +
		"a long garbage collection",
	Needs:  Needs{Processes: true},
	Effect: always(hits(history.Clients)),
	breaks: lateHolder,
	lasts:  stallLasts,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		caught, p, err := t.process(ctx)
		if err != nil {
			return "", nil, err
		}
		defer caught.Go()
		if err := p.Stop(); err != nil {
			return "", nil, err
		}
		sleep(ctx, stallLasts.of(t.TTL))
		caught.Go() // before Continue: the signal may take effect later
		return fmt.Sprintf("stopped the process of w%02d %s for %s", caught.Worker, caught.where(),
			stallLasts.of(t.TTL)), nil, p.Continue()
	},
}

var killProcess = Fault{
	Name:   "kill-process",
	Doc:    "a worker process is killed with a lock in its hands and does not come back",
	Needs:  Needs{Processes: true},
	Effect: always(hits(history.Clients)),
	breaks: crashWorker.breaks,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		caught, p, err := t.process(ctx)
		if err != nil {
			return "", nil, err
		}
		err = p.Kill()
		caught.Die() // the process may not have ended yet
		return fmt.Sprintf("killed the process of w%02d %s", caught.Worker, caught.where()), nil, err
	},
}

// process stops a worker between the load and the store of its counter. It returns the worker and the worker's process.
func (t *Target) process(ctx context.Context) (*Caught, Process, error) {
	caught, err := t.holder(ctx, Loaded)
	if err != nil {
		return nil, nil, err
	}
	p, err := t.Workers.Process(caught.Worker)
	if err != nil {
		caught.Go()
	}
	return caught, p, err
}
