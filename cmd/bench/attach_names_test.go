package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// nameOf returns a name for a node that servers on this machine can resolve: its IP address as a hexadecimal number.
// The function getaddrinfo accepts such a name, although the DNS does not know it.
func nameOf(t *testing.T, n *topologies.Node) (name, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ip := net.ParseIP(host).To4()
	return fmt.Sprintf("0x%02x%02x%02x%02x", ip[0], ip[1], ip[2], ip[3]), port
}

// TestAttachedToSentinelsThatAnnounceNames is told by --map where the names are.
func TestAttachedToSentinelsThatAnnounceNames(t *testing.T) {
	if testing.Short() {
		t.Skip("as sentinels that announce addresses, with other names")
	}
	top := others(t, "sentinel")
	site := top.Sites[0]
	everyone(t, top)
	var maps, addrs, monitored []string
	for _, n := range top.Nodes {
		if n.Role == topologies.Sentinel {
			continue
		}
		name, port := nameOf(t, n)
		maps = append(maps, name+":"+port+"="+n.Addr())
		// the primary's too, for when it is a replica
		testbed.Command(t, n, "CONFIG", "SET", "replica-announce-ip", name)
		if n.Role == topologies.Primary {
			monitored = []string{name, port}
			continue
		}
		testbed.Command(t, n, "CLIENT", "KILL", "TYPE", "master") // it says its name when it connects
	}
	for _, n := range top.Nodes {
		if n.Role != topologies.Sentinel {
			continue
		}
		for _, setting := range []string{"resolve-hostnames", "announce-hostnames"} {
			testbed.Command(t, n, "SENTINEL", "CONFIG", "SET", setting, "yes")
		}
		testbed.Command(t, n, "SENTINEL", "REMOVE", site.Master)
		testbed.Command(t, n, "SENTINEL", "MONITOR", site.Master, monitored[0], monitored[1], 2)
		testbed.Command(t, n, "SENTINEL", "SET", site.Master, "auth-pass", site.Password())
		addrs = append(addrs, "redis://:"+site.Password()+"@"+n.Addr())
	}
	for _, n := range top.Nodes {
		live.Wait(t, "all names of replicas at "+n.Name, func() bool {
			return n.Role != topologies.Sentinel ||
				strings.Count(fmt.Sprint(testbed.Command(t, n, "SENTINEL", "REPLICAS", site.Master)),
					"0x7f") >= len(maps)-1
		})
	}
	t.Setenv("HAMMERLOCK_REDIS_USER", "app")
	t.Setenv("HAMMERLOCK_REDIS_PASSWORD", appPassword)
	args := []string{"--topology", "sentinel", "--master", site.Master, "--addr", strings.Join(addrs, ","), "--map",
		strings.Join(maps, ",")}
	both(t, top, "", args...)
	r := attached(t, t.TempDir(), appPassword, "verify",
		append(args, "--duration", "6s", "--workers", "4", "--lease", "1s", "--fault", "failover@1s",
			"--allow-destructive", "failover")...)
	if r.code == 2 || r.code == 4 || !strings.Contains(r.out, "failover@1s") {
		t.Errorf("a failover: exit code %d\n%s", r.code, r.out)
	}
	secondName(t, top, args)
}

// secondName gives replicas a second name. In a failover, Sentinel could then make a server the replica of itself.
// The suite must report that before the run.
func secondName(t *testing.T, top *topologies.Topology, args []string) {
	t.Helper()
	for _, n := range top.Nodes {
		if n.Role != topologies.Sentinel {
			testbed.Command(t, n, "CONFIG", "SET", "replica-announce-ip", "")
			testbed.Command(t, n, "CLIENT", "KILL", "TYPE", "master")
		}
	}
	for _, n := range top.Nodes {
		live.Wait(t, "two names of a replica at "+n.Name, func() bool {
			return n.Role != topologies.Sentinel ||
				strings.Contains(fmt.Sprint(testbed.Command(t, n, "SENTINEL", "REPLICAS", top.Sites[0].Master)),
					"name 127.")
		})
	}
	r := attached(t, t.TempDir(), appPassword, "bench", append(args, "--duration", "200ms")...)
	if !strings.Contains(r.out, "by another name") {
		t.Errorf("a replica with two names: exit code %d\n%s", r.code, r.out)
	}
}
