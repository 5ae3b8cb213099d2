package cli

import (
	"errors"
	"strconv"

	"hammerlock/internal/settings"
	"hammerlock/workload"
)

// loadFlags declares the flags of a load, on locks or on a service. The argument patience is the help of the flag
// --patience.
func (o *options) loadFlags(patience string) {
	p, w := &o.plan, &o.plan.Workload
	o.Integer(flag(load, "workers", "how many visit at the same time"), &w.Workers, 0)
	o.Integer(flag(load, "pages", "how many pages there are"), &w.Keys, 0)
	settings.One(&o.Set, flag(load, "popularity", "how visits choose a page: even, zipf"), &w.Popularity,
		settings.Words(workload.AllPopularities...))
	o.Duration(flag(load, "duration", "how long to measure"), &p.Duration)
	o.Duration(flag(load, "warmup", "how long to work before that"), &p.Warmup)
	o.Duration(flag(load, "think", "closed loop: how long a worker rests between visits"), &w.Think)
	o.Duration(flag(load, "patience", patience), &w.Wait)
	o.Rate(flag(load, "rate", "open loop: visits a second over all workers, as in 1000/s (default: closed loop)"),
		&w.Rate)
	o.arrivalsFlag()
}

func (o *options) seed(usage string) {
	o.Add(flag(session, "seed", usage), "n", "", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errors.New("a whole number, 0 or more")
		}
		o.plan.Workload.Seed = n
		return nil
	})
}

func (o *options) out(usage string) { o.Text(flag(session, "out", usage), "dir", &o.plan.Out) }
