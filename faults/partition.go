package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

var partition = Fault{
	Name: "partition",
	Arg:  sets,
	Doc: "links between two sets are cut: partition:n1+clients/n2 both ways, partition:n1>n2+n3 one way; " +
		"holder is the process of a worker with a lock; without sets a " +
		"minority of the nodes drawn at random from all others, clients reach both sides",
	Needs:               Needs{Links: true},
	Unavailable:         needsNodes,
	UnavailableAttached: clientsOnly,
	Effect:              cut,
	Names:               nodesOf,
	targets: func(t *topologies.Topology) (all []string) {
		for _, name := range nodeNames(t) {
			all = append(all, name+"/"+string(links.AllNodes),
				name+"/"+string(links.AllNodes)+"+"+string(links.AllClients))
		}
		return all
	},
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		rule, err := t.sides(ctx)
		if err != nil {
			return "", nil, err
		}
		return t.link(rule, fmt.Sprintf("cut %s from %s", list(rule.From), list(rule.To)))
	},
}

// sides returns a rule that drops the traffic between the two sides of the partition. The argument names the sides;
// without an argument, they are drawn at random.
func (t *Target) sides(ctx context.Context) (links.Rule, error) {
	r := links.Rule{Effect: links.Drop}
	if t.Arg == "" {
		nodes := t.Topology.Nodes
		few := 1 + t.Rand.IntN((len(nodes)-1)/2)
		for place, i := range t.Rand.Perm(len(nodes)) {
			p := links.Party(nodes[i].Name)
			if place < few {
				r.From = append(r.From, p)
			} else {
				r.To = append(r.To, p)
			}
		}
		return r, nil
	}
	from, to, both := strings.Cut(t.Arg, "/")
	if !both {
		from, to, r.OneWay = strings.Cut(t.Arg, ">")
	}
	r.From, r.To = parties(from), parties(to)
	return r, errors.Join(t.name(ctx, r.From, Granted), t.name(ctx, r.To, Granted))
}

// nodesOf returns the nodes that the argument names, and the names of all nodes.
func nodesOf(arg string, s Scene) (named, known []string) {
	for name := range strings.FieldsFuncSeq(arg, func(r rune) bool { return strings.ContainsRune("/>+", r) }) {
		if p := links.Party(name); p != links.AllNodes && p != holderParty && !links.IsClient(p) {
			named = append(named, name)
		}
	}
	return named, s.Names
}

func sets(text string) string {
	if strings.ContainsAny(text, "/>") {
		return ""
	}
	return "two sets, as in n1+clients/n2 or n1>n2"
}

// clientsOnly is the UnavailableAttached of partition. Attached servers have proxies for the traffic of clients
// only, so a partition cannot cut servers from each other.
func clientsOnly(arg string) string {
	from, to, both := strings.Cut(arg, "/")
	if !both {
		from, to, _ = strings.Cut(arg, ">")
	}
	kinds := func(text string) (clients, nodes bool) {
		for _, p := range parties(text) {
			client := p == links.AllClients || p == holderParty || strings.HasPrefix(string(p), "client ")
			clients, nodes = clients || client, nodes || !client
		}
		return clients, nodes
	}
	fromClients, fromNodes := kinds(from)
	toClients, toNodes := kinds(to)
	if to == "" || fromClients == fromNodes || toClients == toNodes || fromClients == toClients {
		return "links stand between clients and servers, not between servers of others: name both, " +
			"as in partition:clients/n1"
	}
	return ""
}

// holderParty in an argument stands for the process of a worker that holds a lock.
const holderParty = "holder"

// name replaces holderParty in a list by the clients of one process: the process of a worker that holds a lock. To
// find this process, name stops a worker at the point for a moment.
func (t *Target) name(ctx context.Context, list []links.Party, point string) error {
	i := slices.Index(list, holderParty)
	if i < 0 {
		return nil
	}
	caught, err := t.holder(ctx, point)
	if err != nil {
		return err
	}
	defer caught.Go()
	p, err := t.Workers.Process(caught.Worker)
	if err != nil {
		return err
	}
	list[i] = links.ClientParty(p.Source())
	return nil
}

func parties(text string) (all []links.Party) {
	for name := range strings.SplitSeq(text, "+") {
		all = append(all, links.Party(name))
	}
	return all
}

func list(parties []links.Party) string {
	return strings.Join(human.Names(parties, func(p links.Party) string { return string(p) }), "+")
}

var partitionPrimary = Fault{
	Name:                "partition-primary",
	Doc:                 "the primary of a page's lock is cut from its peers, but old clients still reach it",
	Needs:               Needs{Links: true},
	Unavailable:         needsReplicas,
	UnavailableAttached: ownServers,
	Effect:              cut,
	Inject: ofPrimary(func(_ context.Context, t *Target, primary *topologies.Node) (string, Heal, error) {
		peers := slices.DeleteFunc(slices.Clone(t.Topology.Nodes), func(n *topologies.Node) bool {
			return n == primary
		})
		return t.link(between(primary, peers, links.Drop), "cut "+primary.Name+" from its peers")
	}),
}
