package topologies

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// find asks the deployment for its nodes. It is an error if the suite cannot reach an address that clients use. An
// unreachable replica is left out.
func (t *Topology) find(ctx context.Context) error {
	a := t.Spec.attached
	var err error
	switch kind := t.Spec.Name; {
	case kind == sentinel.Name:
		err = t.findBehindSentinels(ctx)
	case kind == cluster.Name:
		err = t.findCluster(ctx)
	case kind == replica.Name:
		err = t.findReplicas(ctx)
	case kind == redlock.Name && len(a.Endpoints) < 3:
		return fmt.Errorf("%d addresses: a majority that survives the loss of a server needs three or more",
			len(a.Endpoints))
	default:
		err = t.findIndependent(ctx)
	}
	if err != nil {
		return err
	}
	return t.keep(ctx)
}

func (t *Topology) at(ctx context.Context, name string, role Role, e Endpoint) (*Node, error) {
	n := &Node{Name: name, Role: role, topology: t, front: e.Addr, back: cmp.Or(t.Spec.attached.Map[e.Addr], e.Addr)}
	if err := n.connect(ctx, e); err != nil {
		return nil, errors.Join(err, n.close())
	}
	t.Nodes = append(t.Nodes, n)
	return n, nil
}

// connect opens the suite's own connection, and reads the server's version, role and run id.
func (n *Node) connect(ctx context.Context, e Endpoint) error {
	a := n.topology.Spec.attached
	n.control = newControl(controlOptions{addr: n.front, to: n.back, login: e.Login, db: e.DB, tls: a.tls})
	n.control.AddHook(guard{prefix: n.topology.prefix, allow: a.Allow})
	hello, err := n.control.Do(ctx, "HELLO").Result()
	var reply redis.Error
	switch {
	case errors.As(err, &reply) && !refusedLogin(err):
		n.topology.hide("HELLO", err)
	case err != nil:
		return n.unreachable(err)
	}
	fields := helloFields(hello)
	info, err := n.Info(ctx)
	switch {
	case errors.As(err, &reply):
		n.topology.hide("INFO", err)
	case err != nil:
		return n.unreachable(err)
	}
	n.runID = info["run_id"]
	mode := cmp.Or(info["redis_mode"], info["server_mode"], fields["mode"])
	if want, ok := modes[n.topology.Spec.Name]; ok && mode != "" && n.Role != Sentinel && mode != want {
		return fmt.Errorf("%s is no %s: it runs in mode %s; --topology says what it is", n.front, n.topology.Spec.Name,
			mode)
	}
	if n.Role == Sentinel && mode != "" && mode != "sentinel" {
		return fmt.Errorf("%s is no sentinel: it runs in mode %s; --addr names the sentinels", n.front, mode)
	}
	if role := cmp.Or(info["role"], fields["role"]); n.Role == "" {
		n.Role = Primary
		if role == "slave" || role == "replica" {
			n.Role = Replica
		}
	}
	n.topology.version(info, fields)
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		n.topology.Evicting = append(n.topology.Evicting, fmt.Sprintf("%s (maxmemory %s, maxmemory-policy %s)", n.Name,
			info["maxmemory_human"], policy))
	}
	return nil
}

// modes maps a topology to the redis_mode that INFO of its servers must show.
var modes = map[string]string{"single": "standalone", "replica": "standalone", "sentinel": "standalone",
	"redlock": "standalone", "cluster": "cluster"}

// refusedLogin tells whether the error is the refusal of a login, and not of a command.
func refusedLogin(err error) bool {
	return redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") ||
		redis.HasErrorPrefix(err, "ERR AUTH")
}

// unreachable adds advice for the user to the error of a server that does not answer.
func (n *Node) unreachable(err error) error {
	where := n.front
	if n.back != n.front {
		where += " (--map: " + n.back + ")"
	}
	return Unreachable(where, n.front, n.topology.Spec.attached.TLS, err)
}

// Unreachable adds advice for the user to the error of an attached server that does not answer. The argument where
// names the server in the new error.
func Unreachable(where, addr string, secured *TLS, err error) error {
	var reply redis.Error
	refused := errors.As(err, &reply)
	switch {
	case redis.HasErrorPrefix(err, "NOAUTH"):
		return fmt.Errorf("%s asks for a password, and none is given: put it into $HAMMERLOCK_REDIS_PASSWORD or "+
			"--password-file", where)
	case refusedLogin(err):
		return fmt.Errorf("%s refused the user or the password: %w", where, err)
	case refused:
		return fmt.Errorf("%s refuses a command: %w", where, err)
	case strings.HasPrefix(err.Error(), "redis: invalid reply"):
		return fmt.Errorf("%s is no Redis server: %w", where, err)
	case secured == nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return fmt.Errorf("%s hung up: %w; if it speaks TLS: rediss://%s", where, err, addr)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	hint := ""
	switch {
	case secured == nil || unknown:
	case errors.Is(err, context.DeadlineExceeded):
		hint = "; if it does not speak TLS: redis://" + addr
	case len(secured.Cert) == 0: // a server that requires a client certificate may just close the connection
		hint = "; if it asks for a certificate of the client: --tls-cert and --tls-key"
	}
	return fmt.Errorf("%s cannot be reached from here: %w%s", where, err, hint)
}

func helloFields(reply any) map[string]string {
	switch r := reply.(type) {
	case []any:
		return pairs(r)
	case map[any]any:
		fields := map[string]string{}
		for k, v := range r {
			fields[fmt.Sprint(k)] = fmt.Sprint(v)
		}
		return fields
	}
	return nil
}

// version stores the server's program and version from the first reply that has them.
func (t *Topology) version(info, hello map[string]string) {
	if t.Options.Server.Version != "" {
		return
	}
	switch {
	case info["valkey_version"] != "":
		t.Options.Server = Server{Name: "Valkey", Version: info["valkey_version"]}
	case info["redis_version"] != "":
		t.Options.Server = Server{Name: "Redis", Version: info["redis_version"]}
	case hello["version"] != "":
		t.Options.Server = Server{Name: map[string]string{"valkey": "Valkey"}[hello["server"]],
			Version: hello["version"]}
		t.Options.Server.Name = cmp.Or(t.Options.Server.Name, "Redis")
	}
}

// hide notes that the servers refuse a command, with their error.
func (t *Topology) hide(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hidden == nil {
		t.hidden = map[string]string{}
	}
	t.hidden[what] = err.Error()
}

// Hidden maps each command that the attached servers refused to their error.
func (t *Topology) Hidden() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.hidden)
}

// foreignSite adds a site of attached servers. Clients first connect to the nodes in seeds.
func (t *Topology) foreignSite(name string, e Endpoint, nodes []*Node, seeds ...*Node) *Site {
	a := t.Spec.attached
	s := &Site{Name: name, Nodes: nodes, seeds: seeds, tls: a.tls,
		access: Access{Foreign: true, User: e.Login.user, Password: e.Login.password, DB: e.DB, Map: a.Map, TLS: a.TLS}}
	t.Sites = append(t.Sites, s)
	return s
}

func (t *Topology) findIndependent(ctx context.Context) error {
	for i, e := range t.Spec.attached.Endpoints {
		n, err := t.at(ctx, nodeName("n", i), "", e)
		if err != nil {
			return err
		}
		if n.Role == Replica {
			return fmt.Errorf("%s is a replica and takes no writes: name its primary", e.Addr)
		}
		if err := t.independent(n, e); err != nil {
			return err
		}
		name := n.Name
		if len(t.Spec.attached.Endpoints) == 1 {
			name = "main"
		}
		t.foreignSite(name, e, []*Node{n}, n)
	}
	return nil
}

func (t *Topology) findReplicas(ctx context.Context) error {
	var primary *Node
	var of Endpoint
	for i, e := range t.Spec.attached.Endpoints {
		n, err := t.at(ctx, nodeName("n", i), "", e)
		if err != nil {
			return err
		}
		same := t.alias(n)
		switch {
		case same >= 0:
			return fmt.Errorf("%s and %s are the same server (run_id %s): --addr names each once", t.Nodes[same].front,
				n.front, n.runID)
		case n.Role != Primary:
		case primary != nil:
			return fmt.Errorf("%s and %s are both primaries: servers without replicas are --topology redlock",
				primary.front, n.front)
		default:
			primary, of = n, e
		}
	}
	if primary == nil {
		return errors.New("none of the addresses is a primary")
	}
	t.Spec.Nodes = len(t.Nodes)
	t.foreignSite("main", of, t.Nodes, primary)
	return nil
}

func (t *Topology) findBehindSentinels(ctx context.Context) error {
	a := t.Spec.attached
	var sentinels []*Node
	for i, e := range a.Endpoints {
		n, err := t.at(ctx, nodeName("s", i), Sentinel, e)
		if err != nil {
			return err
		}
		sentinels = append(sentinels, n)
	}
	addr, err := sentinels[0].Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", a.Master).StringSlice()
	if err != nil || len(addr) != 2 {
		return fmt.Errorf("the sentinel %s knows no primary by the name %q (--master): %w", sentinels[0].front,
			a.Master, err)
	}
	data := Endpoint{Login: a.Data, DB: a.Endpoints[0].DB, Addr: net.JoinHostPort(addr[0], addr[1])}
	if _, err := t.at(ctx, "n1", Primary, data); err != nil {
		return mapHint(fmt.Errorf("the primary that sentinels announce: %w", err), data.Addr)
	}
	replicas, err := sentinels[0].Do(ctx, "SENTINEL", "REPLICAS", a.Master).Slice()
	if err != nil {
		t.hide("SENTINEL REPLICAS", err)
	}
	for i, r := range replicas {
		fields, _ := r.([]any)
		p := pairs(fields)
		t.maybe(ctx, nodeName("n", i+1),
			Endpoint{Login: data.Login, DB: data.DB, Addr: net.JoinHostPort(p["ip"], p["port"])})
	}
	t.Spec.Nodes = len(replicas) + 1
	nodes := t.Nodes[len(sentinels):]
	s := t.foreignSite("main", data, nodes, sentinels...)
	s.Master, s.access.Sentinel = a.Master, [2]string{a.Endpoints[0].Login.user, a.Endpoints[0].Login.password}
	t.Nodes = append(slices.Clone(nodes), sentinels...)
	return nil
}

// The function maybe tries to reach a replica, and adds it on success. A failure is no error, because no client
// connects to a replica. A server that the sentinels list under two names is left out: a failover may promote it
// under one name and then make it a replica of itself.
func (t *Topology) maybe(ctx context.Context, name string, e Endpoint) {
	n, err := t.at(ctx, name, Replica, e)
	if err == nil {
		known := t.alias(n)
		if known < 0 {
			return
		}
		t.Nodes = t.Nodes[:len(t.Nodes)-1]
		err = errors.Join(fmt.Errorf("it is %s by another name, which a failover may make a replica of itself: "+
			"replica-announce-ip on each server gives it one name",
			t.Nodes[known].front), n.close())
	}
	t.hide("replica "+e.Addr, err)
}

func (t *Topology) findCluster(ctx context.Context) (err error) {
	a := t.Spec.attached
	var slots []redis.ClusterSlot
	for _, e := range a.Endpoints {
		if slots, err = t.slots(ctx, e); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	login := a.Endpoints[0].Login
	seen := map[string]bool{}
	for _, replicas := range []bool{false, true} { // primaries first
		for _, slot := range slots {
			for i, m := range slot.Nodes {
				if seen[m.Addr] || (i > 0) != replicas {
					continue
				}
				seen[m.Addr] = true
				name, e := nodeName("n", len(seen)-1), Endpoint{Addr: m.Addr, Login: login}
				if replicas {
					t.maybe(ctx, name, e)
				} else if _, err := t.at(ctx, name, Primary, e); err != nil {
					return mapHint(fmt.Errorf("a primary that the cluster announces: %w", err), e.Addr)
				}
			}
		}
	}
	t.Spec.Nodes = len(seen)
	s := t.foreignSite("main", Endpoint{Login: login}, t.Nodes, t.Nodes...)
	s.Cluster = true
	all, err := members(ctx, t.Nodes[0])
	if err != nil {
		t.hide("CLUSTER NODES", err)
	}
	for _, m := range all { // nodes name each other by address, but clients may get host names
		if m.name == "" {
			continue
		}
		if n := s.byAddr(m.name); n != nil {
			n.peer = m.addr
		}
	}
	return nil
}

// slots gets the owners of all slots from one node. A node that does not know its own host name leaves this name
// empty in its reply. Then slots fills in the host that the user gave.
func (t *Topology) slots(ctx context.Context, e Endpoint) ([]redis.ClusterSlot, error) {
	n := &Node{Name: "seed", Role: Primary, topology: t, front: e.Addr,
		back: cmp.Or(t.Spec.attached.Map[e.Addr], e.Addr)}
	defer func() { _ = n.close() }()
	if err := n.connect(ctx, e); err != nil {
		return nil, err
	}
	// client libraries of all versions send CLUSTER SLOTS
	asked := redis.NewClusterSlotsCmd(ctx, "cluster", "slots")
	_ = n.control.Process(ctx, asked) // asked keeps the error
	slots, err := asked.Result()
	if err != nil {
		return nil, fmt.Errorf("%s: CLUSTER SLOTS: %w", e.Addr, err)
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("%s: the cluster has no slots", e.Addr)
	}
	host, _ := splitAddr(e.Addr)
	for _, s := range slots {
		for i, m := range s.Nodes {
			if h, port := splitAddr(m.Addr); h == "" {
				s.Nodes[i].Addr = net.JoinHostPort(host, port)
			}
		}
	}
	return slots, nil
}

// mapHint adds to an error how --map makes the announced address reachable.
func mapHint(err error, addr string) error {
	return fmt.Errorf("%w; if it has another address from here: --map %s=HOST:PORT", err, addr)
}
