package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// moveTimeout is the time limit for MIGRATE, in milliseconds.
const moveTimeout = 5000

// Move migrates the slot of a key, with all its keys, to the next primary of a cluster, as an operator does to add
// servers. It makes a pause before the keys move, and another one before the slot has its new owner. During that
// time clients get ASK for missing keys; afterwards they get MOVED. Move returns the old and the new owner when
// all nodes agree.
func (s *Site) Move(ctx context.Context, key string, pause time.Duration) (from, to *Node, err error) {
	if from, err = s.slotOwner(ctx, key); err != nil {
		return nil, nil, err
	}
	slot, err := from.Do(ctx, "CLUSTER", "KEYSLOT", key).Int()
	if err != nil {
		return from, nil, err
	}
	ids := map[*Node]string{}
	all, err := members(ctx, from)
	primaries := map[*Node]bool{}
	for _, m := range all {
		n := s.byAddr(m.addr)
		ids[n], primaries[n] = m.id, m.primary == "-" && len(m.slots) > 0
	}
	at := slices.Index(s.Nodes, from)
	// not straight back to the former owner, which a client may still use
	for _, n := range slices.Concat(s.Nodes[at+1:], s.Nodes[:at]) {
		if to == nil && primaries[n] {
			to = n
		}
	}
	if to == nil {
		return from, nil, errors.Join(err, errors.New("there is no other primary"))
	}
	err = errors.Join(
		to.run(ctx, []any{"CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from]}),
		from.run(ctx, []any{"CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to]}))
	if err == nil {
		err = s.moveKeys(ctx, slot, from, to, pause)
	}
	if err != nil {
		stable := []any{"CLUSTER", "SETSLOT", slot, "STABLE"}
		return from, to, errors.Join(err, from.run(ctx, stable), to.run(ctx, stable))
	}
	owned := []any{"CLUSTER", "SETSLOT", slot, "NODE", ids[to]}
	for _, n := range []*Node{to, from} { // the new owner first, so that the slot always has an owner
		err = errors.Join(err, n.run(ctx, owned))
	}
	return from, to, errors.Join(err, poll(ctx, pollEvery, func() error { return s.agree(ctx, slot, ids[to]) }))
}

// moveKeys moves the keys of a slot to its next owner. MIGRATE is atomic, so no key is ever on both nodes.
func (s *Site) moveKeys(ctx context.Context, slot int, from, to *Node, pause time.Duration) error {
	if err := during(ctx, pause); err != nil {
		return err
	}
	ip, port := splitAddr(to.back)
	for {
		keys, err := from.Do(ctx, "CLUSTER", "GETKEYSINSLOT", slot, scanCount).Slice()
		if err != nil {
			return err
		}
		if len(keys) == 0 { // no new key can appear, because writers are redirected to the next owner
			return during(ctx, pause)
		}
		migrate := []any{"MIGRATE", ip, port, "", 0, moveTimeout, "AUTH", to.topology.password, "KEYS"}
		if err := from.run(ctx, append(migrate, keys...)); err != nil {
			return err
		}
	}
}

// during waits for d. It returns an error if ctx ends first.
func during(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// agree returns nil if every running node names this owner of a slot.
func (s *Site) agree(ctx context.Context, slot int, owner string) error {
	return each(s.Nodes, func(n *Node) error {
		if n.State() != Up {
			return nil
		}
		all, err := members(ctx, n)
		for _, m := range all {
			if m.owns(slot) != (m.id == owner) {
				return fmt.Errorf("takes another server for the owner of slot %d", slot)
			}
		}
		return err
	})
}
