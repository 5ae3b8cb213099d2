package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/settings"
	"hammerlock/internal/witness"
	"hammerlock/results"
	"hammerlock/topologies"
)

// wireOptions are the flags of wire.
type wireOptions struct {
	*options
	witness.Options
	topology topologies.Spec // of the servers to start; without a name none are
	env      []string
	tapOnly  bool
	breaks   []string
	scenes   []string // scenarios: each on a command of its own
	listen   string
	given    []string // the command
	command  string   // that does it again
	found    *topologies.Attachment
}

func (e Env) wireCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "wire --to redis://... --locks PATTERN [-- COMMAND...]",
		Short: "the locks of any program that speaks to Redis, judged as seen on the wire",
		Long: "wire stands between a program and its Redis, and reads from what they say to each other, and from the server's\n" +
			"replication stream, who was granted which lock, by which command it ended, and whose that was. The history is judged as\n" +
			"that of any other run. The program is not touched: it gets the proxy's address in $REDIS_URL, and as --env says.\n\n" +
			"Without a command it listens until it is interrupted, or for --duration. See docs/WIRE.md.",
		Example: "  verify wire --to redis://127.0.0.1:6379 --locks 'lock:*' -- python3 shop.py\n" +
			"  verify wire --topology single --locks 'lock:*' --data 'stock:*' -- node shop.js\n" +
			"  verify wire --topology single --locks 'lock:*' --fault pause-program:2s@granted:5 -- php shop.php\n" +
			"  verify wire --to redis://10.0.0.1 --locks 'lock:*' --tap-only",
		Args: takes(0, unlimited),
	}
	p := e.verifyPlan()
	p.Topologies, p.Duration = nil, 0
	o := &wireOptions{options: newOptions(c, p)}
	o.wireFlags()
	return e.command(c, o.options, interruptible(func(ctx context.Context, s signals, args []string) int {
		return e.wire(ctx, s, o, args)
	}))
}

func (o *wireOptions) wireFlags() {
	to := o.Add(flag(setting, "to",
		"the server, as redis://user:password@host:port/db or rediss://...; given several times: independent servers, as of Redlock"), "url", "",
		func(text string) error {
			o.plan.Attach.Addrs = append(o.plan.Attach.Addrs, settings.Split(text)...)
			return nil
		})
	to.Repeatable = true
	known := topologiesOf(o.plan.Known)
	settings.One(&o.Set, flag(setting, "topology", "what to start in place of --to: "+known.String()), &o.topology,
		known)
	o.wirePatterns(&o.Locks, &o.Data, &o.env)
	o.Holder.By = witness.Auto
	o.Add(flag(setting, "holder",
		"what tells holders apart: auto, token, connection (each serves one at a time), or arg:N, an argument of their commands"), "way",
		string(witness.Auto), o.holder)
	o.Duration(flag(setting, "duration", "how long to watch; 0s = until the command ends, or an interrupt"),
		&o.plan.Duration)
	settings.One(&o.Set, flag(setting, "tap",
		"whether to read the server's replication stream: auto = if it lets us; off = answers alone tell"), &o.plan.Tap,
		taps)
	o.Toggle(flag(setting, "tap-only",
		"no proxy: only read the replication stream, and print a line for each violation and a summary a minute"), "",
		&o.tapOnly)
	o.Add(flag(load, "fault",
		"what breaks, and when: "+breakNames()+", at @granted, @refused, @extended, @released or @read, of which :3 is the third and /10 every tenth, "+
			"as in pause-program:2s@granted:5; may be given several times"), "name@moment", "",
		func(text string) error {
			o.breaks = append(o.breaks, text)
			_, err := parseBreak(text)
			return err
		}).Repeatable = true
	names := settings.Words(wireScenarioNames()...)
	names.Groups = map[string]func(string) bool{everyScenario: func(string) bool { return true }}
	settings.Some(&o.Set, flag(load, "scenario",
		"faults that a right program survives, each on a command of its own: all, or some of "+names.String()),
		&o.scenes, names)
	o.Text(flag(setting, "listen", "where the proxy listens (default: a free port on loopback)"), "addr", &o.listen)
	o.Text(flag(setting, "user", "with --to: the user"), "name", &o.plan.Attach.User)
	o.Text(flag(setting, "password-file", "with --to: a file with the password"), "path", &o.plan.Attach.PasswordFile)
	o.Text(flag(setting, "tls-ca", "with rediss://: certificates of the authorities (default: the system's)"), "path",
		&o.plan.Attach.CA)
	o.Text(flag(setting, "redis-server", "the server to start (default: looked for)"), "path", &o.plan.RedisServer)
	o.Begin(outputSection)
	o.out("where runs are saved")
	o.has(jsonOutput, quietOutput, dashboardOutput)
}

// wirePatterns declares which keys are watched, and the variables of commands.
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
		"a variable that the command gets besides $REDIS_URL, with {url}, {host}, {port}, {urls}, {nodes}, {sentinels} or {master} "+
			"in it,\nas in DSN={host}:{port}; may be given several times", env, variable)
}

func (o *wireOptions) holder(text string) error {
	by, arg, _ := strings.Cut(text, ":")
	switch o.Holder.By = witness.By(by); {
	case by == string(witness.ByArg):
		n, err := strconv.Atoi(arg)
		if o.Holder.Arg = n; err != nil || n < 1 {
			return errors.New("arg:N has the number of an argument, counted from the command's name, which is 0: as in arg:3")
		}
	case !slices.Contains([]witness.By{witness.Auto, witness.ByToken, witness.ByConnection}, o.Holder.By) || arg != "":
		return errors.New("auto, token, connection or arg:N")
	}
	return nil
}

// check names all that is wrong with the command line.
func (o *wireOptions) check(args []string) error {
	o.given = args
	to, own := len(o.plan.Attach.Addrs) > 0, o.topology.Name != "" || o.Flags != nil && o.Flags.Changed("topology")
	switch {
	case to == own:
		o.Mistake("to", "names the server, or --topology starts one: give one of them")
	case to && o.plan.RedisServer != "":
		o.Mistake("redis-server", "names what to start; with --to nothing is started")
	}
	if to {
		o.plan.Attach.Prefix = topologies.DefaultPrefix // of keys of the suite's own: there are none
		found, mistakes := o.plan.Attach.Resolve(false)
		for _, m := range mistakes {
			o.Mistake("", "%s", strings.ReplaceAll(m.Text, "--addr", "--to"))
		}
		o.found = found
	}
	if len(o.Locks) == 0 {
		o.Mistake("locks", "is missing: which keys are locks, as in --locks 'lock:*'")
	}
	if o.tapOnly && (len(args) > 0 || !o.plan.Tap || len(o.breaks)+len(o.scenes) > 0 || len(o.Data) > 0 ||
		len(o.env) > 0) {
		o.Mistake("tap-only",
			"reads the replication stream and does nothing else: leave out the command, --tap off, --fault, --scenario, --data and --env")
	}
	if len(o.scenes) > 0 && (len(args) == 0 || len(o.breaks) > 0) {
		o.Mistake("scenario",
			"runs the command once for each, with the scenario's faults: give a command, and no --fault")
	}
	for _, text := range o.breaks {
		if b, err := parseBreak(text); err == nil && b.refusedHere(o, len(args) > 0) != "" {
			o.Mistake("fault", "%s: %s", text, b.refusedHere(o, len(args) > 0))
		}
	}
	if own && len(args) == 0 && !o.tapOnly && o.listen == "" && o.plan.Duration == 0 {
		o.Mistake("", "a command is missing: the program to watch, behind --")
	}
	return o.invalid()
}

// wire watches, judges and answers.
func (e Env) wire(ctx context.Context, s signals, o *wireOptions, args []string) int {
	if err := o.check(args); err != nil {
		return e.refuse(s.stop, o.options, err)
	}
	o.command = o.repeated()
	stop := s.stop
	if len(args) == 0 {
		stop = context.WithoutCancel(s.stop) // to be interrupted is how it ends
	}
	var runs []results.Run
	var seen []*watch
	for _, planned := range o.rounds(func(text string) { e.say(o.options, "%s", text) }) {
		if s.stop.Err() != nil && len(runs) > 0 {
			break
		}
		w := &watch{Env: e, o: o, round: planned}
		if !o.tapOnly {
			w.quit = s.press
		}
		run, err := w.run(ctx, s.stop)
		switch {
		case err != nil:
			return e.refuse(s.stop, o.options, err)
		case run == nil && w.violations > 0:
			return Violation
		case run == nil:
			return Passed
		}
		runs, seen = append(runs, *run), append(seen, w)
	}
	judged := judgements(o.plan.Out, runs)
	f := results.Findings{Judged: judged, Whole: o.weigh(judged, nil, nil), Replay: o.replays(runs)}
	for i := range runs {
		f.Took += time.Duration(runs[i].Took)
	}
	x := exit(stop, f.Whole, nil, nil)
	return e.answer(o.options, result{x, Document{Schema: schema, Exit: x, Runs: runs, Verdict: &f.Whole},
		func(out io.Writer) error {
			err := f.Write(out)
			for _, w := range seen {
				err = errors.Join(err, w.write(out))
			}
			return err
		}, e.notify(o.plan.Out, judged)})
}

// round is a run of the command: with the faults that were given, or with those of a scenario.
type round struct {
	scenario string
	faults   []string
}

// rounds are those of the plan. A scenario whose faults are unavailable is left out, and that is said.
func (o *wireOptions) rounds(tell func(string)) (all []round) {
	if len(o.scenes) == 0 {
		return []round{{faults: o.breaks}}
	}
	for _, s := range wireScenarios {
		if !slices.Contains(o.scenes, s.name) {
			continue
		}
		out := ""
		for _, text := range s.faults {
			if b, err := parseBreak(text); err == nil {
				out = cmp.Or(out, b.refusedHere(o, true))
			}
		}
		if out != "" {
			tell(s.name + " is left out: " + out)
			continue
		}
		all = append(all, round{s.name, s.faults})
	}
	return all
}

// wiredRun visits a service, and watches its Redis meanwhile if that is planned.
func (e Env) wiredRun(ctx context.Context, s signals, c *cobra.Command, o *options) int {
	to, v := o.plan.Service.Wire, e.verifyPlan()
	w := &wireOptions{options: &options{plan: v},
		Options: witness.Options{Locks: to.Locks, Data: to.Data, Holder: witness.Holder{By: witness.Auto}},
		env:     to.Env}
	w.plan.Out, w.plan.Topologies, w.quiet = o.plan.Out, nil, o.quiet
	known := topologiesOf(v.Known)
	switch i := slices.Index(known.Names(), to.To); {
	case to.To == "" && len(to.Locks)+len(to.Data)+len(to.Env) > 0:
		o.Mistake("locks", ", --data and --env are about what --wire watches: give --wire")
	case to.To == "":
	case i >= 0:
		w.topology = known.All[i]
	default:
		w.plan.Attach.Addrs = settings.Split(to.To)
	}
	if to.To != "" {
		if len(o.plan.Service.Serve) == 0 {
			o.Mistake("wire", "watches what --serve starts: give --serve")
		}
		if err := w.check(o.plan.Service.Serve); err != nil {
			for _, m := range w.Mistakes {
				o.Mistake("wire", ": %s", m.Text)
			}
		}
	}
	if to.To == "" || len(o.Mistakes) > 0 {
		return e.run(ctx, s, c, o)
	}
	seen := &watch{Env: e, o: w}
	defer func() { e.complain(seen.close()) }()
	w.command = o.repeats(c, o.plan)
	if err := seen.begin(ctx, s.stop); err != nil {
		return e.refuse(s.stop, o, err)
	}
	o.plan.Service.Env = seen.variables()
	o.beside = seen.save
	return e.run(ctx, s, c, o)
}

// repeated is the command that does it again, without secrets.
func (o *wireOptions) repeated() string {
	parts := []string{typed("verify"), "wire"}
	for _, name := range settings.Having(o.Flags,
		func(_ *pflag.Flag, v *settings.Value) bool { return v.Part != session && len(v.Given) > 0 }) {
		for _, text := range o.Value(name).Given {
			parts = append(parts, "--"+name, quote(text))
		}
	}
	if len(o.given) > 0 {
		parts = append(parts, "--")
	}
	for _, a := range o.given {
		parts = append(parts, quote(a))
	}
	return strings.Join(parts, " ")
}
