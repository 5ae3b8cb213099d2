package faults

import (
	"strings"
	"testing"
	"time"

	"hammerlock/topologies"
)

// TestMoments: a fault begins at the n-th occurrence of a point, at every n-th, or at the first. If a source does not
// have the point, the mistake names the source's points.
func TestMoments(t *testing.T) {
	own := topologies.Can{Own: true}
	for item, want := range map[string]struct {
		source   Source
		hits     string // at the first six occurrences
		force    time.Duration
		mistaken string
	}{
		"drop-reply@granted/2":       {OnWire, "-x-x-x", 0, ""},
		"cut@released:3":             {OnWire, "--x---", 0, ""},
		"cut@read":                   {OnWire, "x-----", 0, ""},
		"delay@read":                 {OnWire, "xxxxxx", 50 * time.Millisecond, ""},
		"delay:400ms@read/3":         {OnWire, "--x--x", 400 * time.Millisecond, ""},
		"refuse:OOM@granted:2":       {OnWire, "-x----", 0, ""},
		"pause-program:2s@granted:5": {OnWire, "----x-", 2 * time.Second, ""},
		"kill-program@granted:5":     {OnWire, "----x-", 0, ""},
		"kill-primary@granted":       {OnWire, "x-----", 2 * time.Second, ""},
		"kill-primary:3s@granted":    {OnWire, "x-----", 3 * time.Second, ""},
		"kill-primary:3s@granted:2":  {OfWorkers, "-x----", 3 * time.Second, ""},
		"stall-worker@loaded/3":      {OfWorkers, "--x--x", 2 * time.Second, ""},
		"kill-primary:3s":            {OfWorkers, "", 0, "takes nothing after a colon"},
		"refuse@granted":             {OnWire, "", 0, "refuse:OOM@granted, refuse:LOADING@granted"},
		"refuse:OOM@refused":         {OnWire, "", 0, "before it is executed"},
		"cut@loaded":                 {OnWire, "", 0, "a point: granted, refused, extended, released, read"},
		"cut@granted:0":              {OnWire, "", 0, ":3 is the third such moment"},
		"cut":                        {OnWire, "", 0, "a fault is NAME@MOMENT"},
		"stall-worker@granted":       {OnWire, "", 0, "there is kill-primary"},
		"cut@granted":                {OfWorkers, "", 0, "verify wire; there is kill-primary"},
		"kill-primary@1s":            {OfService, "", 0, "there is kill-program, pause-program"},
		"break@granted":              {OnWire, "", 0, "kill-primary"},
		"stall-worker@extended":      {OfWorkers, "", 0, "a point: refused, granted, loaded, between"},
	} {
		s := Scene{Source: want.source, Topology: "x", Sites: 1, Nodes: 3, Can: own, Processes: 1}
		if want.source == OnWire {
			s.Programs = 1
		}
		steps, mistakes := Parse([]string{item}, s, 10*time.Second, 1)
		switch {
		case want.mistaken != "":
			if !strings.Contains(mistakes.String(), want.mistaken) {
				t.Errorf("%s: got the mistakes %q, want %q", item, mistakes.String(), want.mistaken)
			}
			continue
		case len(mistakes) > 0:
			t.Errorf("%s: %s", item, mistakes.String())
			continue
		}
		hits := ""
		for n := 1; n <= 6; n++ {
			hits += map[bool]string{true: "x", false: "-"}[steps[0].Hit(n)]
		}
		if text, again := steps[0].String(), steps[0].Force(); text != item || hits != want.hits ||
			again != want.force {
			t.Errorf("%s: got %s, hits %s, in force %s; want %s, %s", item, text, hits, again, want.hits, want.force)
		}
	}
}

// TestFaultsOfServersOfOthers: with attached servers and a program under test, a fault can disturb only messages and
// the program.
func TestFaultsOfServersOfOthers(t *testing.T) {
	s := Scene{Source: OnWire, Topology: "x", Sites: 1, Nodes: 1, Programs: 1}
	for item, want := range map[string]string{"kill-primary@granted": "only where it is ours", "cut@granted": "",
		"pause-program@granted": ""} {
		if _, mistakes := Parse([]string{item}, s, 0, 1); !strings.Contains(mistakes.String(), want) ||
			(want == "") != (len(mistakes) == 0) {
			t.Errorf("%s: %q", item, mistakes.String())
		}
	}
}
