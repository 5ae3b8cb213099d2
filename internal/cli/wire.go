package cli

import (
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

	"hammerlock/internal/witness"
	"hammerlock/results"
	"hammerlock/topologies"
)

// wireOptions are the flags of wire.
type wireOptions struct {
	*options
	witness.Options
	topology topologies.Spec // what to start; without a name nothing is
	env      []string
	tap      string
	tapOnly  bool
	breaks   []wireBreak
	listen   string
	most     int
	cmd      *cobra.Command
	given    []string // the command
	found    *topologies.Attachment
}

const (
	tapOff = "off"
	tapOn  = "auto"
)

func (e Env) wireCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "wire --to redis://... --locks PATTERN [-- COMMAND...]", Short: "the locks of any program that speaks to Redis, judged as seen on the wire",
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
	o := &wireOptions{options: newOptions(c, p), tap: tapOn, most: 4 << 20, cmd: c}
	o.wireFlags()
	return e.command(c, o.options, interruptible(func(ctx context.Context, s signals, args []string) int { return e.wire(ctx, s, o, args) }))
}

func (o *wireOptions) wireFlags() {
	to := o.add(flag{setting, "to", "the server, as redis://user:password@host:port/db or rediss://...; given several times: independent servers, as of Redlock"}, "url", "",
		func(text string) error {
			o.plan.Attach.Addrs = append(o.plan.Attach.Addrs, split(text)...)
			return nil
		})
	to.many = true
	known := topologiesOf(o.plan.Known)
	one(o.options, flag{setting, "topology", "what to start in place of --to: " + known.String()}, &o.topology, known)
	o.patterns("locks", "the keys that are locks, as KEYS has patterns; may be given several times", &o.Locks)
	o.patterns("data", "the keys that the locks guard: what is read and written under a lock shows lost updates", &o.Data)
	o.Holder.By = witness.Auto
	o.add(flag{setting, "holder", "what tells holders apart: auto, token, connection (each serves one at a time), or arg:N, an argument of their commands"}, "way",
		string(witness.Auto), o.holder)
	o.add(flag{setting, "env", "a variable that the command gets besides $REDIS_URL, with {url}, {host}, {port} or {urls} in it, as in DSN={host}:{port}; may be given several times"},
		"name=text", "", func(text string) error {
			if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
				return errors.New("a variable is NAME=TEXT, as in CACHE_URL={url}")
			}
			o.env = append(o.env, text)
			return nil
		}).many = true
	o.duration(flag{setting, "duration", "how long to watch; 0s = until the command ends, or an interrupt"}, &o.plan.Duration)
	one(o.options, flag{setting, "tap", "whether to read the server's replication stream: auto = if it lets us; off = answers alone tell"}, &o.tap, words(tapOn, tapOff))
	o.toggle(flag{setting, "tap-only", "no proxy: only read the replication stream, and print a line for each violation and a summary a minute"}, "", &o.tapOnly)
	o.add(flag{load, "fault", "what breaks, and when: " + breakNames() + ", at @granted, @refused, @extended, @released or @read, of which :3 is the third and /10 every tenth, " +
		"as in pause-program:2s@granted:5; may be given several times"}, "name@moment", "", o.breaking).many = true
	o.text(flag{setting, "listen", "where the proxy listens (default: a free port on loopback)"}, "addr", &o.listen)
	o.text(flag{setting, "user", "with --to: the user"}, "name", &o.plan.Attach.User)
	o.text(flag{setting, "password-file", "with --to: a file with the password"}, "path", &o.plan.Attach.PasswordFile)
	o.text(flag{setting, "tls-ca", "with rediss://: certificates of the authorities (default: the system's)"}, "path", &o.plan.Attach.CA)
	o.text(flag{setting, "redis-server", "the server to start (default: looked for)"}, "path", &o.plan.RedisServer)
	o.begin(outputSection)
	o.out("where runs are saved")
	o.outputFlags()
}

func (o *wireOptions) patterns(name, usage string, to *[]string) {
	o.add(flag{setting, name, usage}, "pattern", "", func(text string) error {
		if _, err := path.Match(text, ""); err != nil || text == "" {
			return errors.New("a pattern is as those of KEYS: lock:*")
		}
		*to = append(*to, text)
		return nil
	}).many = true
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
	to, own := len(o.plan.Attach.Addrs) > 0, o.topology.Name != ""
	switch {
	case to == own:
		o.mistake("--to names the server, or --topology starts one: give one of them")
	case to && o.plan.RedisServer != "":
		o.mistake("--redis-server names what to start; with --to nothing is started")
	case own && o.topology.Name != "single" && o.topology.Name != "redlock":
		o.mistake("--topology %s: wire starts single and redlock; what is behind sentinels or in a cluster is not read yet", o.topology.Name)
	}
	if to {
		o.plan.Attach.Prefix = topologies.DefaultPrefix // of keys of the suite's own: there are none
		found, mistakes := o.plan.Attach.Resolve(false)
		for _, m := range mistakes {
			o.mistake("%s", strings.ReplaceAll(m, "--addr", "--to"))
		}
		o.found = found
	}
	if len(o.Locks) == 0 {
		o.mistake("--locks is missing: which keys are locks, as in --locks 'lock:*'")
	}
	if o.tapOnly && (len(args) > 0 || o.tap == tapOff || len(o.breaks) > 0 || len(o.Data) > 0 || len(o.env) > 0) {
		o.mistake("--tap-only reads the replication stream and does nothing else: leave out the command, --tap off, --fault, --data and --env")
	}
	for _, b := range o.breaks {
		if len(args) == 0 && b.program() {
			o.mistake("--fault %s: it breaks the program, and there is no command", b.text)
		}
	}
	if own && len(args) == 0 && !o.tapOnly && o.listen == "" && o.plan.Duration == 0 {
		o.mistake("a command is missing: what is to be watched, behind --")
	}
	return o.invalid()
}

// wire watches, judges and answers.
func (e Env) wire(ctx context.Context, s signals, o *wireOptions, args []string) int {
	o.plan.Attach.Secrets = e.secrets
	if err := o.check(args); err != nil {
		return e.refuse(s.stop, o.options, err)
	}
	w := &watch{Env: e, o: o}
	run, err := w.run(ctx, s.stop)
	switch {
	case err != nil:
		return e.refuse(s.stop, o.options, err)
	case run == nil && w.violations > 0:
		return Violation
	case run == nil:
		return Passed // to be interrupted is how it ends
	}
	runs := []results.Run{*run}
	judged := judgements(o.plan.Out, runs)
	stop := s.stop
	if len(args) == 0 {
		stop = context.WithoutCancel(s.stop) // to be interrupted is how it ends
	}
	f := results.Findings{Judged: judged, Whole: o.weigh(judged, nil, nil), Took: time.Duration(run.Took), Replay: o.replays(runs)}
	x := exit(stop, f.Whole, nil, nil)
	return e.answer(o.options, result{x, Document{Schema: schema, Exit: x, Runs: runs, Verdict: &f.Whole}, func(out io.Writer) error {
		return errors.Join(f.Write(out), w.write(out))
	}, e.notify(o.plan.Out, judged)})
}

// repeated is the command that does it again, without secrets.
func (o *wireOptions) repeated() string {
	parts := []string{typed("verify"), "wire"}
	for _, name := range flagNames(o.flags, func(_ *pflag.Flag, v *value) bool { return v.part != session && len(v.given) > 0 }) {
		for _, text := range o.flags.Lookup(name).Value.(*value).given {
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
