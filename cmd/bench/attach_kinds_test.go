package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// both runs bench and verify on servers of others, or one of them in short tests, and looks that nothing is left.
func both(t *testing.T, top *topologies.Topology, short string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bench", "verify"} {
		if testing.Short() && name != short {
			continue
		}
		more := []string{"--duration", "400ms", "--warmup", "0s", "--workers", "4"}
		if name == "verify" {
			more = append(more, "--fault", "drop-reply:10@100ms", "--lease", "300ms", "--processes", "2",
				"--counter", "topology")
		}
		var r reported
		live.Again(t, func(int) string {
			if r = attached(t, dir, appPassword, name, append(args, more...)...); strings.Contains(r.out,
				"no greeting within") {
				return "a driver was slow to start"
			}
			return ""
		})
		if r.code != 0 && r.code != 3 || !strings.Contains(r.out, "attached: measured") {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.out)
		}
		if strings.Contains(r.out, appPassword) || strings.Contains(r.out, sentinelPassword) {
			t.Errorf("%s shows a password:\n%s", name, r.out)
		}
	}
	kept(t, dir, appPassword)
	for _, n := range top.Nodes {
		if n.Role == topologies.Primary {
			if left := testbed.Command(t, n, "KEYS", "*").([]any); len(left) != 0 {
				t.Errorf("%s has %v left", n.Name, left)
			}
		}
	}
}

// everyone lets the user in on all data nodes.
func everyone(t *testing.T, top *topologies.Topology) (addrs []string) {
	t.Helper()
	for _, n := range top.Nodes {
		if n.Role != topologies.Sentinel {
			admit(t, n)
			addrs = append(addrs, "redis://app:"+appPassword+"@"+n.Addr())
		}
	}
	return addrs
}

func TestAttachedToIndependentServers(t *testing.T) {
	t.Parallel()
	top := others(t, "redlock")
	both(t, top, "bench", "--topology", "redlock", "--addr", strings.Join(everyone(t, top)[:3], ","))
}

func TestAttachedToReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("as sentinels, without them")
	}
	top := others(t, "replica")
	both(t, top, "", "--topology", "replica", "--addr", strings.Join(everyone(t, top), ","))
}

const sentinelPassword = "s3cret-of-sentinels"

func TestAttachedToSentinelsWithTwoPasswords(t *testing.T) {
	top := others(t, "sentinel")
	everyone(t, top)
	var addrs []string
	for _, n := range top.Nodes {
		if n.Role == topologies.Sentinel {
			testbed.Command(t, n, "ACL", "SETUSER", "watcher", "on", ">"+sentinelPassword, "+@all", "&*")
			addrs = append(addrs, "redis://watcher:"+sentinelPassword+"@"+n.Addr())
		}
	}
	t.Setenv("HAMMERLOCK_REDIS_USER", "app")
	t.Setenv("HAMMERLOCK_REDIS_PASSWORD", appPassword)
	args := []string{"--topology", "sentinel", "--master", top.Sites[0].Master, "--addr", strings.Join(addrs, ",")}
	both(t, top, "verify", args...)
	if testing.Short() {
		return
	}
	everyone := append(args, "--duration", "6s", "--workers", "4", "--lease", "1s", "--fault", "failover@1s")
	if r := attached(t, t.TempDir(), appPassword, "verify", everyone...); r.code != 2 ||
		!strings.Contains(r.out, "--allow-destructive failover") {
		t.Errorf("without permission: exit code %d\n%s", r.code, r.out)
	}
	for _, n := range top.Nodes {
		if n.Role != topologies.Sentinel {
			admit(t, n)
		}
	}
	r := attached(t, t.TempDir(), appPassword, "verify", append(everyone, "--allow-destructive", "failover")...)
	if r.code == 2 || r.code == 4 || !strings.Contains(r.out, "failover@1s") {
		t.Errorf("with permission: exit code %d\n%s", r.code, r.out)
	}
}

func TestAttachedToAClusterBehindOtherAddresses(t *testing.T) {
	t.Parallel()
	top := others(t, "cluster")
	addrs := everyone(t, top)
	var maps []string
	for _, n := range top.Nodes {
		_, port, _ := net.SplitHostPort(n.Addr())
		name := n.Name + ".redis.invalid"
		testbed.Command(t, n, "CONFIG", "SET", "cluster-announce-hostname", name,
			"cluster-preferred-endpoint-type", "hostname")
		maps = append(maps, name+":"+port+"="+n.Addr())
	}
	for _, n := range top.Nodes {
		live.Wait(t, "all names of the cluster at "+n.Name, func() bool {
			text := fmt.Sprint(testbed.Command(t, n, "CLUSTER", "SLOTS"))
			return strings.Count(text, ".redis.invalid") == len(top.Nodes)
		})
	}
	args := []string{"--topology", "cluster", "--addr", addrs[0]}
	r := attached(t, t.TempDir(), appPassword, "bench", append(args, "--duration", "200ms")...)
	if r.code != 4 || !strings.Contains(r.out, "--map n") {
		t.Errorf("without --map: exit code %d\n%s", r.code, r.out)
	}
	args = append(args, "--map", strings.Join(maps, ","))
	both(t, top, "bench", append(args, "--pages", "8", "--prefix", "hammerlock:{slot}:")...)
	if testing.Short() {
		return
	}
	for _, n := range top.Nodes {
		admit(t, n, "+cluster|failover")
	}
	r = attached(t, t.TempDir(), appPassword, "verify",
		append(args, "--duration", "5s", "--workers", "4", "--lease", "1s", "--fault", "failover@1s",
			"--allow-destructive", "failover")...)
	if r.code == 2 || r.code == 4 || !strings.Contains(r.out, "failover@1s") {
		t.Errorf("with permission: exit code %d\n%s", r.code, r.out)
	}
}

// authority signs certificates for a test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign writes name.pem and name.key, of the authority itself if it has none yet.
func (a *authority) sign(t *testing.T, name string, c x509.Certificate) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = &c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		a.key = private
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestAttachedByTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	top := others(t, "single")
	n := top.Nodes[0]
	admit(t, n)
	a := &authority{dir: t.TempDir()}
	ca, _ := a.sign(t, "ca", x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, key := a.sign(t, "server", x509.Certificate{DNSNames: []string{"redis.test"}})
	mine, mineKey := a.sign(t, "client", x509.Certificate{})
	host, _, _ := net.SplitHostPort(n.Addr())
	free, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	secured := free.Addr().(*net.TCPAddr)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	testbed.Command(t, n, "CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", ca,
		"tls-auth-clients", "yes",
		"tls-port", secured.Port)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(appPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--addr", "rediss://" + secured.String(), "--user", "app", "--password-file", password, "--tls-ca", ca,
	}
	for what, more := range map[string][]string{
		"--tls-cert and --tls-key": {"--tls-server-name", "redis.test"},
		"cannot validate":          {"--tls-cert", mine, "--tls-key", mineKey},
	} {
		r := attached(t, t.TempDir(), appPassword, "bench", append(append(args, more...), "--duration", "200ms")...)
		if r.code != 4 || !strings.Contains(r.out, what) {
			t.Errorf("want %q: exit code %d\n%s", what, r.code, r.out)
		}
	}
	args = append(args, "--tls-server-name", "redis.test", "--tls-cert", mine, "--tls-key", mineKey)
	if python, err := exec.LookPath("python3"); err == nil { // a lock in a program of its own needs no TLS
		template, err := filepath.Abs("../../drivers/python/template.py")
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--lock", "exec:"+python+" "+template)
	}
	both(t, top, "verify", args...)
}

// TestAttachedToValkey needs a valkey-server on the path.
func TestAttachedToValkey(t *testing.T) {
	if _, err := exec.LookPath("valkey-server"); err != nil {
		t.Skip("no valkey-server on this machine; Debian 12 has one in bookworm-backports")
	}
	server, err := topologies.FindServer(t.Context(), "valkey-server")
	if err != nil {
		t.Fatal(err)
	}
	top := testbed.Up(t, "single", topologies.Options{Server: server})
	both(t, top, "verify", "--addr", everyone(t, top)[0])
}

// TestAttachedInTheDashboard shows servers of others to a person, who cannot kill them.
func TestAttachedInTheDashboard(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a run")
	}
	top := others(t, "single")
	s := sit(t, 120, 40, nil, build(t), "--addr", everyone(t, top)[0], "--duration", "3s", "--warmup", "0s",
		"--workers", "4")
	s.sees("primary")
	s.types("k")
	s.leaves(0)
	if text := s.text(); strings.Contains(text, appPassword) {
		t.Errorf("shows the password:\n%s", text)
	}
	if testbed.Command(t, top.Nodes[0], "PING") != "PONG" {
		t.Error("the server is gone")
	}
}
