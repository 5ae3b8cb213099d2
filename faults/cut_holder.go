package faults

import (
	"cmp"
	"context"
	"fmt"

	"hammerlock/history"
	"hammerlock/topologies/links"
)

var cutHolder = Fault{
	Name: "cut-holder",
	Arg:  oneOf(Granted, Loaded),
	Doc: "the process of a worker that was just granted a lock is cut from all nodes until it is healed " +
		"(cut-holder:loaded: of one that works)",
	Needs:  Needs{Links: true, Processes: true},
	Effect: always(history.Effect{Hits: []history.Party{history.Links}, Blocks: true}),
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		r := links.Rule{Effect: links.Drop, From: []links.Party{holderParty}, To: []links.Party{links.AllNodes}}
		if err := t.name(ctx, r.From, cmp.Or(t.Arg, Granted)); err != nil {
			return "", nil, err
		}
		return t.link(r, fmt.Sprintf("cut %s from all nodes", list(r.From)))
	},
}
