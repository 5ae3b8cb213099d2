package cli

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/results/compare"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// options are the flags of a command that runs a plan.
type options struct {
	plan  harness.Plan
	json  bool
	quiet bool
	list  bool
	tui   string

	count    int
	gates    []compare.Gate
	benchfmt string
	metrics  string

	mistakes []string
}

// mistake collects what is wrong with the command line, so that all of it can be said at once. A value's Set
// therefore never fails.
func (o *options) mistake(format string, args ...any) {
	o.mistakes = append(o.mistakes, fmt.Sprintf(format, args...))
}

// value is a flag's value that is read by a function.
type value struct {
	name string
	kind string
	text string
	set  func(string) error
	opts *options
}

func (v *value) String() string { return v.text }
func (v *value) Type() string   { return v.kind }

func (v *value) Set(text string) error {
	if err := v.set(text); err != nil {
		v.opts.mistake("--%s %q: %v", v.name, text, err)
		return nil
	}
	v.text = text
	return nil
}

func (o *options) add(f *pflag.FlagSet, name, kind, preset, usage string, set func(string) error) {
	f.Var(&value{name: name, kind: kind, text: preset, set: set, opts: o}, name, usage)
}

func (o *options) duration(f *pflag.FlagSet, name string, to *time.Duration, usage string) {
	o.add(f, name, "duration", short(*to), usage, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("a duration has a unit, as in 500ms, 10s or 1m30s")
		}
		*to = d
		return nil
	})
}

func (o *options) integer(f *pflag.FlagSet, name string, to *int, usage string) {
	o.add(f, name, "n", strconv.Itoa(*to), usage, func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("a whole number")
		}
		*to = n
		return nil
	})
}

func (o *options) names(f *pflag.FlagSet, name string, to *[]string, usage string) {
	o.add(f, name, "name,...", strings.Join(*to, ","), usage, func(text string) error {
		*to = (*to)[:0:0]
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*to = append(*to, item)
			}
		}
		return nil
	})
}

// choose declares a flag that takes values of a catalogue by their names.
func choose[T any](o *options, f *pflag.FlagSet, flag string, to *[]T, all []T, name func(T) string, usage string) {
	good := strings.Join(names(all, name), ", ")
	o.add(f, flag, "name,...", strings.Join(names(*to, name), ","), usage, func(text string) error {
		*to = nil
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			if i := slices.IndexFunc(all, func(t T) bool { return name(t) == item }); i >= 0 {
				*to = append(*to, all[i])
			} else {
				o.mistake("--%s %q: there is %s", flag, item, good)
			}
		}
		if strings.Trim(text, ", ") == "" {
			o.mistake("--%s names none; there are: %s", flag, good)
		}
		return nil
	})
}

func (o *options) text(f *pflag.FlagSet, name, kind string, to func(string), preset, usage string) {
	o.add(f, name, kind, preset, usage, func(text string) error { to(text); return nil })
}

// short writes a duration as a person would type it.
func short(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// newOptions declares the flags of both commands.
func newOptions(c *cobra.Command, verify bool) *options {
	o := &options{plan: harness.Default(), count: 1}
	if verify {
		o.plan.Verify, o.plan.Faults, o.plan.Warmup = true, []string{faults.Auto}, 0
		o.plan.Workload.TTL = 3 * time.Second // longer than a failover, and short enough to end in the run
		o.plan.Duration = 20 * time.Second
	}
	o.plan.Workload.Seed = drawSeed()
	f, p, w := c.Flags(), &o.plan, &o.plan.Workload
	f.SortFlags = false
	choose(o, f, "topology", &p.Topologies, topologies.All, topologyName, "what to bring up: "+strings.Join(topologies.Names(), ", "))
	choose(o, f, "lock", &p.Locks, allLocks(), lockName, "what to take: "+strings.Join(lockNames(), ", "))
	o.integer(f, "workers", &w.Workers, "how many visit at the same time")
	o.integer(f, "processes", &p.Processes, "how many processes the workers live in; 1 = in the suite itself")
	o.integer(f, "keys", &w.Keys, "how many pages there are, each with a lock of its own")
	o.text(f, "popularity", "name", func(s string) { w.Popularity = workload.Popularity(s) }, string(w.Popularity),
		"how visits choose a page: even, zipf")
	o.duration(f, "duration", &p.Duration, "how long to measure")
	o.duration(f, "warmup", &p.Warmup, "how long to work before that")
	o.duration(f, "ttl", &w.TTL, "lease of a lock")
	o.duration(f, "hold", &w.Hold, "how long a visit stays between load and store")
	o.duration(f, "think", &w.Think, "closed loop: how long a worker rests between visits")
	o.duration(f, "wait", &w.Wait, "a visit gives up this long after it was due")
	o.duration(f, "retry", &w.Retry, "mean backoff between two tries, jittered by half of it")
	o.duration(f, "extend", &w.Extend, "a visit lengthens its lease to this before it stores; 0s = it does not")
	o.integer(f, "reenter", &w.Reenter, "one in how many visits takes a reentrant lock again")
	o.add(f, "rate", "n/s", "", "open loop: visits a second over all workers, as in 1000/s (default: closed loop)", o.rate)
	o.text(f, "arrivals", "name", func(s string) { w.Arrivals = workload.Arrivals(s) }, string(w.Arrivals),
		"open loop: how visits are spread: poisson, uniform")
	o.add(f, "counter", "name", p.Counter.Name, "where the page views are counted: "+strings.Join(workload.CounterNames(), ", "), o.counter)
	o.names(f, "fault", &p.Faults, "what breaks: names from --list, with @TIME or @POINT and heal@TIME, as in\nkill-primary@2s,heal@5s; auto: what the lock must survive; none")
	f.BoolVar(&p.LibraryRetries, "library-retries", false, "")
	_ = f.MarkHidden("library-retries")
	o.add(f, "seed", "n", "", "repeats the schedule of another run (default: drawn and printed)", o.seed)
	o.text(f, "profile", "name", func(s string) { p.Profile = topologies.Profile(s) }, string(p.Profile),
		"timers of failure detection: fast, for tests; stock, the servers' own")
	o.text(f, "redis-server", "path", func(s string) { p.RedisServer = s }, "",
		"the server to start, also Valkey's or Redict's; or embedded (default: looked for)")
	o.text(f, "out", "dir", func(s string) { p.Out = s }, p.Out, "where runs are saved")
	o.ciFlags(f)
	f.BoolVar(&o.json, "json", false, "print one JSON document instead of tables")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress lines")
	o.tui = tuiAuto
	o.add(f, "tui", "auto|on|off", o.tui, "the dashboard: auto = if stdout and stderr are a terminal", o.tuiMode)
	f.BoolVar(&o.list, "list", false, "print what there is to choose from")
	completions(c)
	return o
}

// drawSeed draws a seed that is short enough to be typed.
func drawSeed() uint64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

func (o *options) rate(text string) error {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || unit != "" && unit != "s" || n <= 0 {
		return fmt.Errorf("visits a second, as in 1000/s")
	}
	o.plan.Workload.Rate = n
	return nil
}

func (o *options) counter(name string) error {
	spec, ok := workload.FindCounter(name)
	if !ok {
		return fmt.Errorf("there is %s", strings.Join(workload.CounterNames(), ", "))
	}
	o.plan.Counter = spec
	return nil
}

func (o *options) seed(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("a whole number, 0 or more")
	}
	o.plan.Workload.Seed = n
	return nil
}

// parse reads the flags and returns the arguments. The flag library stops at the first flag it does not know, so those are looked for
// beforehand and taken out.
func (o *options) parse(f *pflag.FlagSet, args []string) []string {
	var known []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, _, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case arg == "--":
			known = append(known, args[i:]...)
			i = len(args)
		case strings.HasPrefix(arg, "--") && f.Lookup(name) == nil:
			o.mistake("--%s: no such flag%s", name, suggestion(f, name))
			if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
			}
		case strings.HasPrefix(arg, "--") && !hasValue && f.Lookup(name).NoOptDefVal == "" && i+1 == len(args):
			o.mistake("--%s: needs a value", name)
		default:
			known = append(known, arg)
			if strings.HasPrefix(arg, "--") && !hasValue && f.Lookup(name).NoOptDefVal == "" {
				i++
				known = append(known, args[i])
			}
		}
	}
	if err := f.Parse(known); err != nil {
		o.mistake("%v", err)
	}
	return f.Args()
}

// suggestion names the flag that was probably meant.
func suggestion(f *pflag.FlagSet, name string) string {
	best, least := "", 3
	f.VisitAll(func(flag *pflag.Flag) {
		if d := distance(name, flag.Name); d < least || strings.HasPrefix(flag.Name, name) && len(name) > 2 {
			best, least = flag.Name, d
		}
	})
	if best == "" {
		return ""
	}
	return "; did you mean --" + best + "?"
}

// distance is the number of letters to insert, delete or change to make one word the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// notRepeated are the flags that say nothing of a single run.
var notRepeated = []string{"topology", "lock", "seed", "json", "quiet", "list", "out", "tui", "count", "gate", "benchfmt", "metrics",
	"pairs", "show", "slo", "over", "precision"}

// repeat writes the command that repeats one run: every flag that was given, the seed always.
func (o *options) repeat(c *command, topology, lock string) string {
	parts := []string{c.Root().Name(), "--topology", topology, "--lock", lock}
	c.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(notRepeated, flag.Name) {
			parts = append(parts, "--"+flag.Name, quote(flag.Value.String()))
		}
	})
	return strings.Join(append(parts, "--seed", strconv.FormatUint(o.plan.Workload.Seed, 10)), " ")
}

func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]{}~#!`") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
