// Package zookeeper tests locks on ZooKeeper: it has the topologies, faults, and right and wrong locks. Only calls
// through the leader prove a session.
package zookeeper

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hammerlock/beyond/engine"
	"hammerlock/topologies"
)

// Topologies are one server, and three.
var Topologies = engine.OneAndThree(servers, "zookeeper", "Zab", [2]time.Duration{3 * time.Second, 4 * time.Second})

// electionPort is the offset of a node's port for votes.
const electionPort = topologies.PeerPort + 2

var servers = &topologies.Engine{
	Name: engineName, Find: find, Prepare: prepare, Command: command, Info: info, Ready: ready, Asks: asks,
	Proxied: true, Expire: expire, Keeps: true,
}

// tick is the servers' unit of time. Sessions end at ticks.
const tick = 200 * time.Millisecond

// jars lists the jars that a server needs from libzookeeper-java and its dependencies.
var jars = []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java"}

// places is the directory in which packages install jars.
const places = "/usr/share/java"

var versioned = regexp.MustCompile(`zookeeper-(\d[\d.]*)\.jar$`)

func find(context.Context) (topologies.Server, error) {
	missing := errors.New("no ZooKeeper on this machine; to install it: make beyond-servers")
	java, err := exec.LookPath("java")
	if err != nil {
		return topologies.Server{}, missing
	}
	for _, jar := range jars {
		if _, err := os.Stat(filepath.Join(places, jar+".jar")); err != nil {
			return topologies.Server{}, missing
		}
	}
	s := topologies.Server{Path: java, Name: engineName}
	all, _ := filepath.Glob(filepath.Join(places, "zookeeper-*.jar"))
	for _, jar := range all {
		if m := versioned.FindStringSubmatch(jar); m != nil {
			s.Version = m[1]
		}
	}
	return s, nil
}

const engineName = "ZooKeeper"

// prepare writes the configuration. Between servers, votes and writes have ports of their own.
func prepare(_ context.Context, n *topologies.Node) error {
	host, port, err := net.SplitHostPort(n.Back())
	if err != nil {
		return err
	}
	conf := fmt.Sprintf("tickTime=%d\ninitLimit=50\nsyncLimit=10\ndataDir=%s\nclientPort=%s\n"+
		"clientPortAddress=%s\nmaxClientCnxns=0\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=600000\n", tick.Milliseconds(), n.Dir(), port, host,
		2*tick.Milliseconds())
	all := n.Peers()
	for i, p := range all {
		if len(all) > 1 {
			_, votes, _ := net.SplitHostPort(topologies.Shifted(p.Back(), electionPort))
			conf += fmt.Sprintf("server.%d=%s:%s\n", i+1, topologies.Shifted(p.Back(), topologies.PeerPort), votes)
		}
		if p == n {
			err = errors.Join(err, os.WriteFile(filepath.Join(n.Dir(), "myid"), []byte(strconv.Itoa(i+1)), 0o600))
		}
	}
	return errors.Join(err, os.WriteFile(filepath.Join(n.Dir(), "zoo.cfg"), []byte(conf), 0o600))
}

func command(n *topologies.Node) (*exec.Cmd, error) {
	var path []string
	for _, jar := range jars {
		path = append(path, filepath.Join(places, jar+".jar"))
	}
	args := []string{"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error"}
	// Java then uses the proxy for all connections; the last setting includes those to 127.0.0.0/8
	if proxy := n.Proxy(); proxy != "" {
		host, port, _ := net.SplitHostPort(proxy)
		args = append(args, "-DsocksProxyHost="+host, "-DsocksProxyPort="+port, "-DsocksNonProxyHosts=")
	}
	return exec.Command(n.Server().Path,
		append(args, "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.4lw.commands.whitelist=srvr", "-cp",
			strings.Join(path, ":"),
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(n.Dir(), "zoo.cfg"))...), nil
}

// ask connects to a node, past all links.
func ask(ctx context.Context, n *topologies.Node, talk func(net.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Back())
	if err != nil {
		return err
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(end)
	}
	return errors.Join(err, talk(conn))
}

var said = regexp.MustCompile(`(?m)^(Mode|Connections): (\S+)$`)

// info asks for a node's role. A server without a majority is not a leader.
func info(ctx context.Context, n *topologies.Node) (map[string]string, error) {
	var text []byte
	err := ask(ctx, n, func(c net.Conn) error {
		_, err := c.Write([]byte("srvr"))
		if err == nil {
			text, err = io.ReadAll(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	fields := map[string]string{"role": "slave"}
	for _, m := range said.FindAllSubmatch(text, -1) {
		switch name, value := string(m[1]), string(m[2]); {
		case name == "Connections":
			fields["connected_clients"] = value
		case value == "leader" || value == "standalone":
			fields["role"] = "master"
		}
	}
	return fields, nil
}

// A request begins with its length, its number and its operation, of four bytes each. These are the size of this
// header, and the numbers of operations.
const (
	header    = 12
	opCreate  = 1
	opDelete  = 2
	opMulti   = 14
	opClose   = -11
	greetings = 44 // bytes of a session request
)

// ready makes a session and ends it. Both are writes, which need a majority.
func ready(ctx context.Context, n *topologies.Node) error {
	return ask(ctx, n, func(c net.Conn) error { return greet(c, 0, nil, 4*time.Second) })
}

// greet opens a session, or takes over the one with this id, and closes it.
func greet(c net.Conn, id int64, password []byte, life time.Duration) error {
	hello := binary.BigEndian.AppendUint32(nil, greetings)
	hello = binary.BigEndian.AppendUint32(hello, 0) // protocol version
	hello = binary.BigEndian.AppendUint64(hello, 0) // last transaction seen
	hello = binary.BigEndian.AppendUint32(hello, uint32(life.Milliseconds()))
	hello = binary.BigEndian.AppendUint64(hello, uint64(id))
	hello = binary.BigEndian.AppendUint32(hello, 16)
	hello = append(hello, password...)
	hello = append(hello, make([]byte, 16-len(password))...)
	if _, err := c.Write(hello); err != nil {
		return err
	}
	answer, err := frame(c)
	if err != nil {
		return err
	}
	if len(answer) < 16 || binary.BigEndian.Uint64(answer[8:]) == 0 {
		return errors.New("there is no such session")
	}
	bye := binary.BigEndian.AppendUint32(nil, header-4)
	bye = binary.BigEndian.AppendUint32(bye, 1)
	code := int32(opClose)
	bye = binary.BigEndian.AppendUint32(bye, uint32(code))
	if _, err := c.Write(bye); err != nil {
		return err
	}
	_, err = frame(c)
	return err
}

func frame(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, fmt.Errorf("no answer to a request for a session: %w", err)
	}
	body := make([]byte, min(binary.BigEndian.Uint32(size[:]), 1<<20))
	_, err := io.ReadFull(c, body)
	return body, err
}

// asks reports whether the sent bytes contain a request that changes data.
func asks(sent []byte) bool {
	for len(sent) >= header {
		size := int(binary.BigEndian.Uint32(sent))
		switch int32(binary.BigEndian.Uint32(sent[8:])) {
		case opCreate, opDelete, opMulti:
			return !bytes.Equal(sent[4:8], []byte{0, 0, 0, 0}) // 0 is the version in a session request
		}
		sent = sent[min(4+size, len(sent)):]
	}
	return false
}
