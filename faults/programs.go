package faults

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"hammerlock/history"
	"hammerlock/topologies"
)

// ofPrograms lists the kinds of load that have programs under test.
var ofPrograms = []Source{OfService, OnWire}

// programStops is the effect of a paused or killed program.
func programStops(s Scene) history.Effect {
	if s.Source == OnWire {
		return history.Effect{Hits: []history.Party{history.Clients}}
	}
	return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}
}

var killProgram = Fault{
	Name: "kill-program",
	Arg:  numberOf("which program, as in kill-program:2"),
	Doc: "a program under test is killed with all that it has started, and started again when it is healed, behind a " +
		"wire at once (kill-program:2: the second --serve)",
	Passes:  true,
	Sources: ofPrograms,
	Effect:  programStops,
	targets: programs,
	Names:   started,
	Named:   "program",
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		return t.program("killed", (*topologies.Program).Kill, (*topologies.Program).Start)
	},
}

var pauseProgram = Fault{
	Name: "pause-program",
	Arg:  numberOf("which program, as in pause-program:2"),
	Doc: "a program under test is stopped (SIGSTOP) and goes on when it is healed (pause-program:2: " +
		"the second --serve)",
	Sources: ofPrograms,
	Effect:  programStops,
	targets: programs,
	Names:   started,
	Named:   "program",
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		return t.program("paused", (*topologies.Program).Pause, (*topologies.Program).Resume)
	},
}

// started returns the program number in the argument, and the numbers of all programs that the suite has started.
func started(arg string, s Scene) (named, known []string) {
	for i := range s.Programs {
		known = append(known, strconv.Itoa(i+1))
	}
	return []string{arg}, known
}

func programs(t *topologies.Topology) (numbers []string) {
	for i := range t.Programs() {
		numbers = append(numbers, strconv.Itoa(i+1))
	}
	return numbers
}

// program breaks the program with the number in the argument (from 1), or a random one. Its Heal returns when the
// program works again.
func (t *Target) program(done string, breaks, heals func(*topologies.Program) error) (string, Heal, error) {
	all := t.Topology.Programs()
	n := t.number(1 + t.Rand.IntN(len(all)))
	if n > len(all) {
		return "", nil, fmt.Errorf("%q: there are programs 1 to %d", t.Arg, len(all))
	}
	p := all[n-1]
	heal := func(ctx context.Context) error {
		if err := heals(p); err != nil {
			return err
		}
		return p.Ready(ctx)
	}
	if err := breaks(p); err != nil {
		return "", nil, errors.Join(fmt.Errorf("%q", p.Command), err)
	}
	return fmt.Sprintf("%s %q", done, p.Command), heal, nil
}
