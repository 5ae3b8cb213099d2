package etcd

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hammerlock/beyond/engine"
	"hammerlock/topologies"
)

// Topologies has a topology with one server and one with three.
var Topologies = engine.OneAndThree(servers, engineName, "Raft", [2]time.Duration{2 * time.Second, 2 * time.Second})

var servers = &topologies.Engine{
	Name: engineName, Find: program.Find, Command: command, Info: info, Ready: ready, Empty: empty, Asks: asks,
	PeerLinks: peerLinks, Expire: expire, Keeps: true,
}

const engineName = "etcd"

// Timers of the servers. The shortest lease that a server grants is one and a half election timeouts, rounded up
// to whole seconds.
const (
	heartbeat = 50 * time.Millisecond
	election  = 500 * time.Millisecond
)

var program = engine.Program{
	Engine: engineName, Name: "etcd", Ask: []string{"--version"},
	Version: regexp.MustCompile(`(?m)^etcd Version: (\S+)`),
}

// peer returns the address at which a node's peers reach it. It is derived from the address for clients.
func peer(addr string) string { return topologies.Shifted(addr, topologies.PeerPort) }

func peerLinks(n *topologies.Node) map[string]string {
	return map[string]string{peer(n.Addr()): peer(n.Back())}
}

func command(n *topologies.Node) (*exec.Cmd, error) {
	var cluster []string
	for _, p := range n.Peers() {
		cluster = append(cluster, p.Name+"=http://"+peer(p.Addr()))
	}
	return exec.Command(n.Server().Path, "--name", n.Name, "--data-dir", filepath.Join(n.Dir(), "data"),
		"--listen-client-urls", "http://"+n.Back(), "--advertise-client-urls", "http://"+n.Addr(),
		"--listen-peer-urls", "http://"+peer(n.Back()), "--initial-advertise-peer-urls", "http://"+peer(n.Addr()),
		"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new", "--initial-cluster-token",
		n.Password(),
		"--heartbeat-interval", strconv.FormatInt(heartbeat.Milliseconds(), 10), "--election-timeout",
		strconv.FormatInt(election.Milliseconds(), 10),
		"--logger", "zap", "--log-level", "warn"), nil
}

// web is an HTTP client that bypasses all links. It does not reuse connections, because servers restart.
var web = &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// ask calls a node's HTTP gateway, and decodes the answer.
func ask(ctx context.Context, n *topologies.Node, path, body string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.Back()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body == "" {
		r.Method, r.Body = http.MethodGet, nil
	}
	answer, err := web.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s: %s", path, answer.Status, bytes.TrimSpace(text))
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func info(ctx context.Context, n *topologies.Node) (map[string]string, error) {
	var status struct {
		Header struct {
			Member string `json:"member_id"`
		}
		Leader string
	}
	if err := ask(ctx, n, "/v3/maintenance/status", "{}", &status); err != nil {
		return nil, err
	}
	role := "slave"
	if status.Leader == status.Header.Member {
		role = "master"
	}
	return map[string]string{"role": role}, nil
}

// ready reads the cluster's health, which needs a majority.
func ready(ctx context.Context, n *topologies.Node) error {
	var health struct{ Health string }
	err := ask(ctx, n, "/health", "", &health)
	if err == nil && health.Health != "true" {
		err = fmt.Errorf("says that its health is %s", health.Health)
	}
	return err
}

// empty removes all keys. Leases remain until they expire.
func empty(ctx context.Context, nodes []*topologies.Node) error {
	var ignored struct{}
	return ask(ctx, nodes[0], "/v3/kv/deleterange", `{"key":"AA==","range_end":"AA=="}`, &ignored)
}

// expire revokes the lease of the lock's first key, which is the holder's.
func expire(ctx context.Context, n *topologies.Node, lock string) error {
	var first struct{ Kvs []struct{ Lease string } }
	prefix := directory(lock)
	body, err := json.Marshal(map[string]any{"key": []byte(prefix), "range_end": []byte(prefix[:len(prefix)-1] + "0"),
		"sort_target": "CREATE", "limit": 1})
	if err == nil {
		err = ask(ctx, n, "/v3/kv/range", string(body), &first)
	}
	switch {
	case err != nil:
		return err
	case len(first.Kvs) == 0 || first.Kvs[0].Lease == "":
		return fmt.Errorf("no worker holds %s with a lease", lock)
	}
	return ask(ctx, n, "/v3/lease/revoke", fmt.Sprintf(`{"ID":%q}`, first.Kvs[0].Lease), &struct{}{})
}

// directory returns the prefix of a lock's keys in the library. A range of all these keys ends before the prefix
// with 0 in place of the last slash, because 0 follows the slash in ASCII.
func directory(lock string) string { return "/" + lock + "/" }

// Parts of an HTTP/2 frame.
const (
	frameHeader = 9
	dataFrame   = 0
)

// preface is the start of an HTTP/2 connection.
var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// asks reports whether the sent HTTP/2 frames contain data. Any data belongs to a request.
func asks(sent []byte) bool {
	sent = bytes.TrimPrefix(sent, preface)
	for len(sent) >= frameHeader {
		length := int(binary.BigEndian.Uint32(append([]byte{0}, sent[:3]...)))
		if sent[3] == dataFrame && length > 0 {
			return true
		}
		sent = sent[min(frameHeader+length, len(sent)):]
	}
	return false
}
