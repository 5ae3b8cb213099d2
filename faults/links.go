package faults

import (
	"context"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/topologies/links"
)

const (
	lostReplies = 100 // number of dropped replies; most are refusals, and some are of grants and releases
	lateBy      = 20 * time.Millisecond
	messageLate = 50 * time.Millisecond
	lateOneIn   = 12 // one message in this many is delayed, so that visits go on
)

var dropReply = Fault{
	Name: "drop-reply",
	Arg:  numberOf("how many answers, as in drop-reply:40"),
	Doc: "commands are executed, but their answers never arrive: the next 100 of them (drop-reply:40: the next 40); " +
		"of a program: that of one command",
	Sources: []Source{OfWorkers, OnWire},
	Message: func(string) Message { return Message{Drop: true} },
	Needs:   Needs{Links: true},
	// The proxy also breaks the client's connection, so a client may retry without delay.
	Effect: always(history.Effect{Hits: []history.Party{history.Links}, Blocks: true}),
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		count := t.number(lostReplies)
		return t.link(links.Rule{
			From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
			Effect: links.LoseReply, Count: count, Spent: t.Over,
		}, fmt.Sprintf("the next %d answers to clients are lost", count))
	},
}

var delay = Fault{
	Name: "delay",
	Arg:  timeOf("up to how long, as in delay:100ms"),
	Doc: "what clients send and are sent takes 20 to 40 ms longer (delay:100ms: 0 to 100 ms); of a program: " +
		"one reply, 50 ms (delay:100ms: 100 ms)",
	Sources: []Source{OfWorkers, OnWire},
	Message: func(arg string) Message { return Message{Delay: (&Target{Arg: arg}).time(messageLate)} },
	Needs:   Needs{Links: true},
	Effect:  always(hits(history.Links)),
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		least, spread := lateBy, lateBy
		if t.Arg != "" {
			least, spread = 0, t.time(spread)
		}
		return t.link(links.Rule{
			From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
			Effect: links.Delay, Latency: least, Jitter: spread, Seed: t.Rand.Uint64(),
		}, fmt.Sprintf("clients are %s to %s away", least, least+spread))
	},
}

var lateCommand = Fault{
	Name: "late-command",
	Arg:  numberOf("one in how many, as in late-command:100"),
	Doc: "one in twelve of the commands that clients send takes longer than a lease to arrive (late-command:100: " +
		"one in a hundred), as of a " +
		"client that is stopped before it, also between two commands of its lock",
	Needs:  Needs{Links: true},
	Effect: always(hits(history.Links)),
	breaks: lateHolder,
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		oneIn := t.number(lateOneIn)
		late := stallLasts.of(t.TTL)
		return t.link(links.Rule{
			From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes}, OneWay: true,
			Effect: links.Delay, Latency: late, OneIn: oneIn, Seed: t.Rand.Uint64(),
		}, fmt.Sprintf("one in %d commands arrives %s late", oneIn, late))
	},
}

// abandonedPace is the shortest time between two delayed commands of the same kind.
const abandonedPace = 100 * time.Millisecond

var abandonCommand = Fault{
	Name: "abandoned-command",
	Doc: "now and then a command of each kind that clients send, a grant's, an extension's, a release's, arrives " +
		"more than a lease after its client has given the call up and closed the connection",
	Needs: Needs{Links: true},
	// The client has closed the connection without a reply, and may retry without delay.
	Effect: always(history.Effect{Hits: []history.Party{history.Links}, Blocks: true}),
	breaks: lateHolder,
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		// so late that another worker, or the same worker again, holds the lock
		late := stallLasts.of(t.TTL)
		return t.link(links.Rule{
			From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes}, OneWay: true,
			Effect: links.Delay, Latency: late, Abandoned: true, Pace: abandonedPace,
		}, fmt.Sprintf("a command of each kind every %s arrives %s after its client gave it up", abandonedPace,
			late))
	},
}

var cutConnection = Fault{
	Name:    "cut",
	Doc:     "of a program: the reply to one command is lost, and its connection breaks",
	Sources: []Source{OnWire},
	Effect:  always(history.Effect{Hits: []history.Party{history.Links}, Blocks: true}),
	Message: func(string) Message { return Message{Cut: true} },
}

// refusals maps an argument of the fault to the error reply with which servers refuse writes.
var refusals = map[string]string{
	"OOM":      "OOM command not allowed when used memory > 'maxmemory'.",
	"LOADING":  "LOADING Redis is loading the dataset in memory",
	"READONLY": "READONLY You can't write against a read only replica.",
}

var refuseCommand = Fault{
	Name: "refuse",
	Arg: func(text string) string {
		if refusals[text] == "" {
			return "refuse says with what: refuse:OOM@granted, refuse:LOADING@granted or refuse:READONLY@granted"
		}
		return ""
	},
	Doc: "of a program: one command is not executed, and answered with an error (refuse:OOM, refuse:LOADING, " +
		"refuse:READONLY)",
	Sources: []Source{OnWire},
	Effect:  always(history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}),
	Message: func(arg string) Message { return Message{Refuse: refusals[arg]} },
}
