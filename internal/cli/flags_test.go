package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"hammerlock/internal/harness"
	"hammerlock/internal/settings"
)

// planned declares the flags of a plan.
func planned(p harness.Plan) *options {
	o := &options{Set: settings.Set{Flags: pflag.NewFlagSet("", pflag.ContinueOnError)}, plan: p}
	o.planFlags()
	return o
}

// texts returns the values of all flags that make a plan.
func texts(p harness.Plan) map[string]string {
	all := map[string]string{}
	planned(p).Flags.VisitAll(func(f *pflag.Flag) {
		if v := settings.ValueOf(f); v.Part != session {
			all[f.Name] = v.Text
		}
	})
	return all
}

// TestASide reads the settings of one side of a comparison.
func TestASide(t *testing.T) {
	for text, c := range map[string]struct {
		set          map[string]string
		program, err string
	}{
		"lock=redsync":           {map[string]string{"lock": "redsync"}, "", ""},
		"lock=redsync,retry=3ms": {map[string]string{"lock": "redsync", "backoff": "3ms"}, "", ""},
		"fault=kill-primary@2s,heal@5s,keys=2": {
			map[string]string{"fault": "kill-primary@2s,heal@5s", "pages": "2"}, "", "",
		},
		"bench=base/bench, --hold=2ms": {map[string]string{"hold": "2ms"}, "base/bench", ""},
		"redsync":                      {err: "NAME=VALUE"},
		"":                             {err: "NAME=VALUE"},
		"=1":                           {err: "NAME=VALUE"},
		"seed=1": {
			err: `"seed": no such setting of one side; bench plan prints all that there are`,
		},
		"gate=throughput<+1%": {err: `"gate": no such setting of one side`},
		"bakoff=1ms":          {err: "did you mean backoff?"},
		"retry=soon":          {err: `--backoff "soon": a duration has a unit`},
	} {
		common := &options{plan: Env{}.shortPlan()}
		want := texts(common.plan)
		maps.Copy(want, c.set)
		s := newSide(common, text)
		mistakes := s.o.Mistakes.String()
		if got := texts(s.o.plan); (mistakes == "") != (c.err == "") || !strings.Contains(mistakes, c.err) ||
			s.program != c.program || !maps.Equal(got, want) {
			t.Errorf("%q: got %q, %v, mistakes %q", text, s.program, got, mistakes)
		}
	}
}

// samples returns a value for every flag that makes a plan.
func samples(t *testing.T) map[string][]string {
	all := map[string][]string{}
	planned(Env{}.benchPlan()).Flags.VisitAll(func(f *pflag.Flag) {
		switch v := settings.ValueOf(f); {
		case v.Kind == "dir": // not a part of a run's plan
		case f.Name == "driver-env":
			all[f.Name] = []string{"NODE_OPTIONS", "A,B"}
		case v.Complete != nil:
			all[f.Name], _ = v.Complete(nil, nil, "")
		case v.Kind == "n":
			all[f.Name] = []string{"1", "3"}
		case v.Kind == "duration":
			all[f.Name] = []string{"0s", "1ms", "90s", "1h0m0.5s"}
		case v.Kind == "n/s":
			all[f.Name] = []string{"12.5", "1000000/s"}
		case v.Kind == "percent":
			all[f.Name] = []string{"0%", "12.5%", "80%"}
		case v.Kind == "path":
			all[f.Name] = []string{"/opt/it's here/redis-server", "embedded"}
		case v.Kind == "bool":
			all[f.Name] = []string{"true", "false"}
		case v.Kind == "url,...":
			all[f.Name] = []string{"h:1,h:2", "rediss://app@h/2"}
		case v.Kind == "a=b,...":
			all[f.Name] = []string{"10.0.0.1:1=h:1,10.0.0.2:1=h:2"}
		case v.Kind == "name", v.Kind == "text":
			all[f.Name] = []string{"app", "it's:{here}:"}
		default:
			t.Fatalf("no values for --%s", f.Name)
		}
	})
	return all
}

// TestARepeatedCommandIsTheSamePlan writes plans as command lines, parses these, and compares the results with the
// plans. The defaults of the plans differ from those of the command.
func TestARepeatedCommandIsTheSamePlan(t *testing.T) {
	all := samples(t)
	for name, command := range map[string]struct {
		root *cobra.Command
		plan harness.Plan
	}{"bench": {Env{}.benchCommand(), Env{}.benchPlan()}, "verify": {Env{}.verifyCommand(), Env{}.verifyPlan()}} {
		rapid.Check(t, func(t *rapid.T) {
			o := planned(Env{}.shortPlan())
			for flag, good := range all {
				if rapid.Bool().Draw(t, "has "+flag) {
					_ = o.Flags.Set(flag, rapid.SampledFrom(good).Draw(t, flag))
				}
			}
			o.plan.Verify, o.plan.Attempts, o.plan.Jobs = command.plan.Verify, command.plan.Attempts, command.plan.Jobs
			args := arguments(command.root, o.plan)
			again := planned(command.plan)
			if err := again.Flags.Parse(args); err != nil ||
				len(o.Mistakes)+len(again.Mistakes)+again.Flags.NArg() > 0 {
				t.Fatalf("%s %q: %v, mistakes %q %q, arguments %q", name, args, err, o.Mistakes, again.Mistakes,
					again.Flags.Args())
			}
			again.scenarios()
			if got, want := fmt.Sprint(again.plan), fmt.Sprint(o.plan); got != want {
				t.Fatalf("%s %q: got %v, want %v", name, args, got, want)
			}
		})
	}
}

// TestAnOlderBuildKnowsTheFlagsOfARun: a side of a comparison can be a build from before a flag was renamed.
func TestAnOlderBuildKnowsTheFlagsOfARun(t *testing.T) {
	got := settings.Before([]string{"--workers", "4", "--lease", "1s", "--pages", "2", "--out", "lease"})
	if want := []string{"--workers", "4", "--ttl", "1s", "--keys", "2", "--out", "lease"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestARepeatedCommandCanBePasted: a shell accepts the printed command as it is. The command includes the load,
// because without a load bench would run its two default loads.
func TestARepeatedCommandCanBePasted(t *testing.T) {
	p := Env{}.benchPlan()
	p.LibraryRetries, p.RedisServer, p.Workload.Seed, p.Out = true, "/opt/it's here", 7, "elsewhere"
	p.Topologies = p.Topologies[:1]
	want := `bench --topology single --lock auto --duration 10s --library-retries=true ` +
		`--redis-server '/opt/it'\''s here' --seed 7`
	if got := repeat(Env{}.benchCommand(), p); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p.Phases, p.File = []harness.Phase{{Kind: "steady", Duration: time.Second}}, "my plan.yaml"
	want = strings.Replace(strings.Replace(want, "bench ", "bench --plan 'my plan.yaml' ", 1), "--duration 10s ", "", 1)
	if got := repeat(Env{}.benchCommand(), p); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
