package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	source "hammerlock/internal/program"
	"hammerlock/internal/settings"
	"hammerlock/internal/witness"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// keptTime is how much of its history a watch keeps on disk. When a violation occurs, the part around it is saved.
const keptTime = 10 * time.Minute

// wirePlan returns the default plan of the command "wire", which watches a program's Redis traffic. The program is
// run once by default.
func (e Env) wirePlan() harness.Plan {
	p := e.verifyPlan()
	p.Topologies, p.Scenarios, p.Faults, p.Duration, p.Attempts = nil, nil, []string{faults.None}, 0, 1
	p.Program = &source.Spec{Keep: keptTime}
	p.Program.Holder.By = witness.Auto
	return p
}

func (e Env) wireCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "wire --addr redis://... --locks PATTERN [-- COMMAND...]",
		Short: "the locks of any program that speaks to Redis, judged as seen on the wire",
		Long: "wire stands between a program and its Redis, and reads from what they say to each other, " +
			"and from the server's\n" +
			"replication stream, who was granted which lock, by which command it ended, and whose that was. " +
			"The history is judged as\n" +
			"that of any other run. The program is not touched: it gets the proxy's address in $REDIS_URL, " +
			"and as --env says.\n\n" +
			"Without a command it listens until it is interrupted, or for --duration. See docs/WIRE.md.",
		Example: "  verify wire --addr redis://127.0.0.1:6379 --locks 'lock:*' -- python3 shop.py\n" +
			"  verify wire --topology single --locks 'lock:*' --data 'stock:*' -- node shop.js\n" +
			"  verify wire --topology single --locks 'lock:*' --fault pause-program:2s@granted:5 -- php shop.php\n" +
			"  verify wire --addr redis://10.0.0.1 --locks 'lock:*' --tap-only",
		Args: e.takes(0, unlimited),
	}
	o := newOptions(c, e.wirePlan())
	o.count = 1
	o.wireFlags()
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, args []string) int {
		o.watches(e, args)
		return e.run(ctx, s, c, o)
	}))
}

// The method watches puts the command line of the program to watch into the plan. It also makes the plan print
// violations that the replication stream alone proves.
func (o *options) watches(e Env, args []string) {
	w := o.plan.Program
	w.Args = args
	line := func(args []string) string { return "exec " + strings.Join(human.Names(args, quote), " ") }
	if len(args) > 0 {
		w.Command, w.Whole = line(args), line(o.plan.Attach.Secrets.Whole("", args))
		w.Output = e.terminals[1]
	}
	if o.Flags.Changed("topology") && len(o.plan.Topologies) == 0 { // the name was wrong; this finds further mistakes
		o.plan.Topologies = topologies.All[:1]
	}
	to := e.Stdout
	if o.json {
		to = e.Stderr // stdout is for the JSON document
	}
	if o.json && o.endless() {
		o.live = append(o.live, func(context.Context, Env) shows { return shows{cuts{e.Stdout}} })
	}
	w.Tell = func(line string, violation bool) {
		_, _ = fmt.Fprintln(to, line)
		o.overheard = o.overheard || violation
	}
}

// The type cuts prints a line of JSON for each run that is saved around violations during a watch. The document on the
// whole watch follows at the end.
type cuts struct{ to io.Writer }

func (c cuts) tell(e harness.Event) {
	if e.Stage != harness.Running || e.Run == nil {
		return
	}
	x := Exit{Code: Inconclusive, Reason: e.Said}
	if status, _ := e.Run.Safety(); status == checker.Fail {
		x.Code = Violation
	}
	_ = encoder(c.to).Encode( // an error does not matter, because the run is saved
		Document{Schema: schema, Exit: x, Saved: e.Folder, Runs: []results.Run{*e.Run}})
}

func (c cuts) close(context.Context, string) error { return nil }

func (o *options) wireFlags() {
	p, w := &o.plan, o.plan.Program
	o.Flags.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "to" { // former name of the flag
			name = addrFlag
		}
		return settings.Normal(f, name)
	})
	o.Add(flag(setting, addrFlag,
		"the server, as redis://user:password@host:port/db or rediss://...; given several times: "+
			"independent servers, as of Redlock"),
		"url", "", func(text string) error {
			p.Attach.Addrs = append(p.Attach.Addrs, settings.Split(text)...)
			return nil
		}).Repeatable = true
	known := topologiesOf(p.Known)
	settings.Some(&o.Set, flag(setting, "topology", "what to start in place of --addr: "+known.String()), &p.Topologies,
		settings.Catalogue[topologies.Spec]{All: known.All, Name: known.Name})
	o.wirePatterns(&w.Locks, &w.Data, &w.Env)
	o.Add(flag(setting, "holder",
		"what tells holders apart: auto, token, connection (each serves one at a time), or arg:N, "+
			"an argument of their commands"), "way",
		string(witness.Auto), func(text string) error { return holder(&w.Holder, text) })
	o.Duration(flag(setting, "duration", "how long to watch; 0s = until the command ends, or an interrupt"),
		&p.Duration)
	o.Duration(flag(setting, "keep",
		"without a command: how much of the history is on disk, of which violations are cut out"), &w.Keep)
	settings.One(&o.Set, flag(setting, "tap",
		"whether to read the server's replication stream: auto = if it lets us; "+
			"off = answers alone tell"), &p.Tap, taps)
	o.Toggle(flag(setting, "tap-only",
		"no proxy: only read the replication stream, and print a line for each violation and a summary a minute"), "",
		&w.TapOnly)
	o.Add(flag(load, "fault", "what breaks, and when: "+strings.Join(faults.Fitting(faults.OnWire), ", ")+", at @"+
		strings.Join(faults.Commands, ", @")+", of which :3 is the third and /10 every tenth, "+
		"as in pause-program:2s@granted:5; may be given several times"), "name@moment", "", func(text string) error {
		if p.Faults[0] == faults.None {
			p.Faults = nil
		}
		p.Faults = append(p.Faults, settings.Split(text)...)
		return nil
	}).Repeatable = true
	names := settings.Catalogue[scenarios.Scenario]{All: scenarios.Programs(),
		Name:   func(s scenarios.Scenario) string { return s.Name },
		Groups: map[string]func(scenarios.Scenario) bool{everyScenario: func(scenarios.Scenario) bool { return true }}}
	settings.Some(&o.Set, flag(axis, scenarioFlag,
		"faults that a right program survives, each on a command of its own: all, or some of "+names.String()),
		&p.Scenarios, names)
	o.Integer(flag(session, "attempts", "how often the command is run under a scenario that is undecided, at most"),
		&p.Attempts, mostAttempts)
	o.Text(flag(setting, "listen", "where the proxy listens (default: a free port on loopback)"), "addr", &w.Listen)
	o.Text(flag(setting, "user", "with --addr: the user"), "name", &p.Attach.User)
	o.Text(flag(setting, "password-file", "with --addr: a file with the password"), "path", &p.Attach.PasswordFile)
	o.Text(flag(setting, "tls-ca", "with rediss://: certificates of the authorities (default: the system's)"), "path",
		&p.Attach.CA)
	o.Text(flag(setting, "redis-server", "the server to start (default: looked for)"), "path", &p.RedisServer)
	o.Begin(outputSection)
	o.out("where runs are saved")
	o.has(reportOutput, webOutput, metricsOutput, lingerOutput, otlpOutput, jsonOutput, quietOutput, dashboardOutput)
}

func holder(to *witness.Holder, text string) error {
	by, arg, _ := strings.Cut(text, ":")
	switch to.By = witness.By(by); {
	case by == string(witness.ByArg):
		n, err := strconv.Atoi(arg)
		if to.Arg = n; err != nil || n < 1 {
			return errors.New("arg:N has the number of an argument, counted from the command's name, " +
				"which is 0: as in arg:3")
		}
	case !slices.Contains([]witness.By{witness.Auto, witness.ByToken, witness.ByConnection}, to.By) || arg != "":
		return errors.New("auto, token, connection or arg:N")
	}
	return nil
}
