package faults

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/topologies"
)

var (
	own    = topologies.Spec{}.Can()
	single = Scene{
		Can: own, Topology: "single", Sites: 1, Nodes: 1, Claims: history.Claims{Excludes: true, Expires: true},
		Processes: 1,
	}
	sentinel = Scene{Can: own, Topology: "sentinel", Sites: 1, Nodes: 4, Claims: single.Claims, Processes: 1}
	redlock  = Scene{Can: own, Topology: "redlock", Sites: 5, Nodes: 5, Claims: single.Claims, Processes: 2}
)

func texts(steps []Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.String())
	}
	return all
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		items string
		scene Scene
		want  string // the steps with their times, or the mistakes
	}{
		"none":  {"none", single, ""},
		"times": {"kill-primary@2s,heal@5s", single, "kill-primary@2s-5s"},
		"one heal for all": {"kill-primary@1s,flush@2s,heal@5s,delay@6s", single, "kill-primary@1s-5s " +
			"flush@2s-5s delay@6s-0s"},
		"a point":       {"flush@granted", single, "flush@granted-0s"},
		"an argument":   {"partition:n1+clients/n2@1s", sentinel, "partition:n1+clients/n2@1s-0s"},
		"unknown":       {"melt", single, "melt: there is kill-primary"},
		"nowhere to go": {"failover", single, "failover: needs replicas"},
		"no quorum":     {"pause-minority", sentinel, "pause-minority: needs independent sites"},
		"no process":    {"stop-process", single, "stop-process: needs workers in processes"},
		"too late":      {"flush@10s", single, "flush@10s: @ takes a time from 0s to the end at 10s"},
		"heal when":     {"heal", single, "heal: when? As in heal@5s"},
		"all at once":   {"melt,failover,heal", single, "melt: | failover: | heal: "},
	} {
		t.Run(name, func(t *testing.T) {
			steps, mistakes := Parse(strings.Split(c.items, ","), c.scene, 10*time.Second, 1)
			var got []string
			for _, s := range steps {
				got = append(got, s.String()+"-"+s.To.String())
			}
			if len(mistakes) == 0 {
				if text := strings.Join(got, " "); text != c.want {
					t.Errorf("got %q, want %q", text, c.want)
				}
				return
			}
			all := mistakes.String()
			for want := range strings.SplitSeq(c.want, " | ") {
				if !strings.Contains(all, want) {
					t.Errorf("got %q, want %q", all, want)
				}
			}
		})
	}
}

// TestSameSeedSamePlan places many faults. The same seed draws the same plan, and another seed another plan. No two
// faults overlap, and all are within the run.
func TestSameSeedSamePlan(t *testing.T) {
	items := []string{"kill-primary", "delay", "flush", "slow-server", "drop-reply"}
	const run = 10 * time.Second
	for seed := range uint64(200) {
		a, _ := Parse(items, single, run, seed)
		b, _ := Parse(items, single, run, seed)
		other, _ := Parse(items, single, run, seed+1)
		if !slices.Equal(texts(a), texts(b)) || slices.Equal(texts(a), texts(other)) {
			t.Fatalf("seed %d: %v, again %v, next %v", seed, texts(a), texts(b), texts(other))
		}
		slices.SortFunc(a, func(x, y Step) int { return int(x.From - y.From) })
		end := time.Duration(0)
		for _, s := range a {
			if s.From <= end || s.To <= s.From || s.To >= run {
				t.Fatalf("seed %d: %v begins at %v after %v, heals at %v", seed, s, s.From, end, s.To)
			}
			end = s.To
		}
	}
}

// TestAutoIsWhatARightLockSurvives compares the list with every fault's own Breaks.
func TestAutoIsWhatARightLockSurvives(t *testing.T) {
	for _, s := range []Scene{single, sentinel, redlock} {
		steps, mistakes := Parse([]string{Auto}, s, time.Minute, 1)
		if len(mistakes) > 0 || len(steps) == 0 {
			t.Errorf("%s: %d steps, mistakes %v", s.Topology, len(steps), mistakes)
		}
		for _, step := range steps {
			if why := step.Fault.Breaks(s); why != "" {
				t.Errorf("%s: %s breaks what a right lock assumes: %s", s.Topology, step.Fault.Name, why)
			}
		}
	}
	for _, name := range []string{"lost-grant", "stall-worker", "flush", "clock-jump", "restart-empty"} {
		if f, _ := Find(name); f.Breaks(sentinel) == "" {
			t.Errorf("no lock survives %s, but it breaks nothing", name)
		}
	}
}

// TestAutoSparesWhatAFenceNeeds: the fault restart-late forgets no valid lease, but it forgets the last fencing
// token. So it violates an assumption of locks with fences, and none of other locks.
func TestAutoSparesWhatAFenceNeeds(t *testing.T) {
	fenced := single
	fenced.Claims.Fences = true
	if restartLate.Breaks(single) != "" || restartLate.Breaks(fenced) == "" {
		t.Errorf("restart-late breaks %q of a lease and %q of a fence", restartLate.Breaks(single),
			restartLate.Breaks(fenced))
	}
}

// TestACutLinkMayEndASession: a session may end with its connection, so every fault that cuts links breaks what a lock
// of a session assumes. A lock with a lease survives these faults.
func TestACutLinkMayEndASession(t *testing.T) {
	leases := Scene{Sites: 1, Nodes: 1, HeedDeadline: true, Claims: history.Claims{Expires: true}}
	sessions := leases
	sessions.Session = true
	cuts := 0
	for _, f := range All {
		if e := f.Effect(sessions); !e.CutsLinks() {
			continue
		}
		cuts++
		if why := f.Breaks(sessions); why != losesHold {
			t.Errorf("%s breaks %q of a session", f.Name, why)
		}
		if why := f.Breaks(leases); why != "" {
			t.Errorf("%s breaks %q of a lease", f.Name, why)
		}
	}
	if cuts < 5 {
		t.Errorf("only %d faults cut links", cuts)
	}
	if why := delay.Breaks(sessions); why != "" {
		t.Errorf("a delay breaks %q of a session", why)
	}
}

func TestSidesOfAPartition(t *testing.T) {
	for arg, want := range map[string]string{
		"n1+clients/n2": "n1+clients|n2|false", "n1>n2+n3": "n1|n2+n3|true",
	} {
		target := &Target{Arg: arg, Rand: rand.New(rand.NewPCG(1, 1))}
		rule, err := target.sides(t.Context())
		got := list(rule.From) + "|" + list(rule.To) + "|" + map[bool]string{true: "true", false: "false"}[rule.OneWay]
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", arg, got, err, want)
		}
	}
}

// TestAnArgumentThatNamesNothingIsAMistake before anything is started: nodes and programs are already known then.
func TestAnArgumentThatNamesNothingIsAMistake(t *testing.T) {
	sentinel, _ := topologies.Find("sentinel")
	on := Scene{Topology: "sentinel", Sites: 1, Nodes: 4, Names: sentinel.NodeNames(),
		Can: sentinel.Can(), Processes: 2}
	served := Scene{Topology: "http", Programs: 2, Can: topologies.Outside.Can()}
	nodes := "there is n1, n2, n3, n4, s1, s2, s3"
	for item, c := range map[string]struct {
		in   Scene
		want string // empty: the name exists
	}{
		"kill-node:n99":                   {on, "kill-node:n99: no node n99: there is n1, n2, n3, n4, s1, s2, s3"},
		"kill-node:n5":                    {on, "kill-node:n5: no node n5: " + nodes},
		"kill-node:s3":                    {on, ""},
		"partition:n9/n2":                 {on, "partition:n9/n2: no node n9: " + nodes},
		"partition:n1>n2+n9":              {on, "n9: " + nodes},
		"partition:n1+clients/n2+s1":      {on, ""},
		"partition:holder+client 3/nodes": {on, ""},
		"kill-program:3":                  {served, "kill-program:3: no program 3: there is 1, 2"},
		"pause-program:2":                 {served, ""},
	} {
		_, mistakes := Parse([]string{item}, c.in, time.Minute, 1)
		if got := mistakes.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", item, got, c.want)
		}
	}
}

// TestAWrongArgumentIsAMistake before anything is started. Each fault accepts the example in its own error message.
func TestAWrongArgumentIsAMistake(t *testing.T) {
	example := regexp.MustCompile(`\b([a-z-]+:[^ :;,)]+)[:)]`)
	for _, f := range All {
		if f.Arg == nil {
			if example.MatchString(f.Doc) && strings.Contains(f.Doc, f.Name+":") {
				t.Errorf("%s takes no argument, and has an example", f.Name)
			}
			continue
		}
		for _, m := range example.FindAllStringSubmatch(f.Doc, -1) {
			if _, mistakes := Parse([]string{m[1] + "@1s"}, Scene{}, 10*time.Second, 1); len(mistakes) > 0 {
				t.Errorf("%s: %s", f.Name, mistakes)
			}
		}
	}
	for _, wrong := range []string{"delay:abc", "delay:-1s", "reset:0s", "stall-worker:1", "drop-reply:0",
		"late-command:x", "clock-jump:up",
		"cut-holder:n1", "partition:n1", "kill-program:one", "kill-primary:n1"} {
		if _, mistakes := Parse([]string{wrong + "@1s"}, Scene{}, 10*time.Second, 1); len(mistakes) != 1 {
			t.Errorf("%s: got the mistakes %q", wrong, mistakes)
		}
	}
}

// TestARefusedFaultSaysHowToHaveIt: a plan with the fault starts the topology with the options that the fault needs.
func TestARefusedFaultSaysHowToHaveIt(t *testing.T) {
	all := topologies.Options{Links: true, Clock: true, Power: true}
	needy := 0
	for _, f := range All {
		why := f.Refused(single, topologies.Options{})
		if n := f.Needs; f.Refused(single, all) == "" && (n.Links || n.Clock || n.Power) {
			needy++
			if !strings.Contains(why, "--fault "+f.Name) {
				t.Errorf("%s says %q", f.Name, why)
			}
		}
	}
	if needy < 3 {
		t.Errorf("%d faults need something from the start", needy)
	}
}

// TestEveryFaultSaysWhatItIs: a fault without an effect would excuse everything.
func TestEveryFaultSaysWhatItIs(t *testing.T) {
	scenes := []Scene{{Sites: 1, Nodes: 1}, {Sites: 1, Nodes: 3}, {Sites: 1, Nodes: 3, Keeps: true, Session: true},
		{Sites: 5, Nodes: 5},
		{Can: topologies.Can{Lock: true}, Programs: 2}, {Sites: 1, Nodes: 1, Processes: 4, Agents: 2}}
	seen := map[string]bool{}
	for _, f := range All {
		if f.Name == "" || f.Doc == "" || f.Effect == nil || f.Inject == nil && f.Message == nil || seen[f.Name] {
			t.Errorf("fault %q is incomplete or twice there", f.Name)
			continue
		}
		seen[f.Name] = true
		for _, s := range scenes {
			if e := f.Effect(s); !e.Known() {
				t.Errorf("%s does not say what it hits in %+v", f.Name, s)
			}
		}
	}
}
