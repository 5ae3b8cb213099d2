package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
)

// httpCommand returns the command "http". As "verify http" it judges the service's answers; as "bench http" it only
// measures.
func (e Env) httpCommand(p harness.Plan) *cobra.Command {
	name, short, judged := "bench", "load on a service that does its own locking", ""
	if p.Verify {
		name, short = "verify", "a service that does its own locking, judged from outside"
		judged = " Where the answers have a\n" +
			"count, no two may be equal, and a visit that began after another one's answer must get a greater\n" +
			"one (linearizability)."
	}
	own := func(example string) string { return "  " + strings.ReplaceAll(example, "NAME http", name+" http") }
	c := &cobra.Command{
		Use: "http --visit REQUEST --count REQUEST", Short: short, Args: e.takes(0, 0),
		Long: "http visits a service that does its own locking: each visit is a request that adds one page view,\n" +
			"all at once (--burst) or in any shape of load. It compares the acknowledged visits with the count at\n" +
			"the end." + judged + "\n\n" +
			"An answer with a 2xx acknowledges a visit. A refused connection is no visit. After any other answer,\n" +
			"a timeout or a broken connection it is unknown whether the visit counted, unless --refusal names the\n" +
			"status.",
		Example: own("NAME http --visit 'POST http://127.0.0.1:8080/pview' \\\n"+
			"    --count 'GET http://127.0.0.1:8080/pview' --burst 666\n") +
			own("NAME http --visit 'POST http://10.0.0.1/hit http://10.0.0.2/hit' \\\n"+
				"    --count 'GET http://10.0.0.1/hits' --field data.hits --rate 200/s\n") +
			own("NAME http --serve './service :8081' --serve './service :8082' \\\n"+
				"    --visit 'POST http://127.0.0.1:8081/pview http://127.0.0.1:8082/pview' \\\n"+
				"    --count 'GET http://127.0.0.1:8081/pview' --workers 64 --duration 30s"),
	}
	o := newOptions(c, httpPlan(p))
	o.allFlags()
	c.AddCommand(e.planFileCommand(httpPlan(p)),
		e.abCommand(httpPlan(p),
			own("NAME http ab 'visit=POST http://127.0.0.1:8080/v3' 'visit=POST http://127.0.0.1:8080/v4' \\\n"+
				"    --count 'GET http://127.0.0.1:8080/pview'")),
		e.searchCommand(httpPlan(p),
			own("NAME http search --slo 'response.p99<50ms' --visit 'POST http://127.0.0.1:8080/pview' \\\n"+
				"    --count 'GET http://127.0.0.1:8080/pview'")))
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, _ []string) int {
		o.onlyBurst()
		return e.run(ctx, s, c, o)
	}))
}

// onlyBurst reports flags that have no effect together with --burst.
func (o *options) onlyBurst() {
	if o.plan.Service.Burst > 0 {
		const nothing = "does nothing with --burst: all visits begin at once, and then it is over"
		o.Clash(burstSays, nothing)
		if o.Lists[phasesKey] != nil {
			o.Wrong(o.Lists[phasesKey], "%s %s", phasesKey, nothing)
		}
	}
}
