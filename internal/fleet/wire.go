package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/workload"
)

// protocol is the version of the messages below.
const protocol = 1

// The subjects. Orders and acknowledgements go to an agent by its epoch.
const (
	joinSubject  = "join"
	clockSubject = "clock"
	frameSubject = "frame"
	finalSubject = "final"
	orderSubject = "order."
	ackSubject   = "ack."
)

// hello is how an agent announces itself, repeatedly while it waits for work.
type hello struct {
	Protocol int
	Version  string
	Name     string
	Epoch    string // drawn at its start, because process ids repeat in containers
	Host     string
	CPUs     int
	Machine  string // identifies its clock: agents with the same one share it
}

// welcome is the answer to hello.
type welcome struct {
	Refused string // why the agent cannot be used; empty if it can
}

// plan is what an agent is told about a run: data, and names of things that its own program has.
type plan struct {
	Run     string
	Orders  crew.Orders
	Lock    string
	Counter string
	Share   crew.Share
	Timeout time.Duration // a side that receives nothing for this long gives up
}

// sum is a checksum of a plan, by which the agent says which one it has.
func (p *plan) sum() (string, error) {
	b, err := json.Marshal(p)
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8]), err
}

// resolve looks up the names in a plan.
func (p *plan) resolve(known crew.Catalogue) error {
	if !p.Orders.Resolve(known, p.Lock, p.Counter) {
		return fmt.Errorf("it has no lock %q or no counter %q", p.Lock, p.Counter)
	}
	return nil
}

// The orders.
const (
	doPlan   = "plan"   // get ready
	doArm    = "arm"    // the run begins at the time At
	doGo     = "go"     // the run does begin: all others are armed as well
	doStop   = "stop"   // finish the visits in progress, and stop
	doEnd    = "end"    // end now
	doCatch  = "catch"  // stop the next worker at a point
	doForget = "forget" // catch nobody
	doFree   = "free"   // let the worker that was stopped go on, or die
	doSignal = "signal" // send a signal to the worker process
	doKill   = "kill"   // kill the agent and its worker process
	doPause  = "pause"  // stop both, for the time For
	doCut    = "cut"    // cut the network between the worker process and all servers
	doMend   = "mend"   // restore it
)

// order is what the coordinator tells an agent to do.
type order struct {
	Do     string
	Run    string
	Plan   *plan          `json:",omitempty"`
	At     int64          `json:",omitempty"` // on the clock of the agent's machine
	ID     int            `json:",omitempty"` // of a catch
	Point  workload.Point `json:",omitempty"`
	Key    int32          `json:",omitempty"`
	Die    bool           `json:",omitempty"`
	Signal int            `json:",omitempty"`
	For    time.Duration  `json:",omitempty"`
}

// answer is the answer to an order.
type answer struct {
	Error     string        `json:",omitempty"`
	Exchanges []exchange    `json:",omitempty"` // since the last message
	Slack     time.Duration `json:",omitempty"` // when ready: difference between the clocks of its processes
	Plan      string        `json:",omitempty"` // when ready: checksum of its plan
	Views     []string      `json:",omitempty"` // when ready: which servers it sees
	Caught    bool          `json:",omitempty"`
	Worker    int32         `json:",omitempty"` // that was caught
	Key       int32         `json:",omitempty"`
	Hold      history.ID    `json:",omitempty"`
}

// ack tells an agent which of its frames were received and written.
type ack struct {
	Run      string
	Received uint64
	Written  uint64
	Lost     string // why no more frames are accepted; empty if they are
}

// final is an agent's report at the end of a run.
type final struct {
	Run    string
	Agent  string
	Frames uint64
	Report crew.Report
}

func send(nc *bus, subject string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return nc.Publish(subject, b)
}

func ask[T any](nc *bus, subject string, v any, within time.Duration) (answer T, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return answer, err
	}
	m, err := nc.Request(subject, b, within)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(m.Data, &answer)
}

func respond(m *nats.Msg, v any) {
	if b, err := json.Marshal(v); err == nil {
		_ = m.Respond(b) // the error is ignored: without an answer the request is sent again
	}
}

func introduce(name, epoch, version string) hello {
	host, _ := os.Hostname() // only shown
	return hello{Protocol: protocol, Version: version, Name: cmp.Or(name, host), Epoch: epoch, Host: host,
		CPUs: runtime.NumCPU(), Machine: machine()}
}

// machine identifies the clock that all processes of a machine share (a time namespace has another); empty if unknown.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/time")
	if err != nil || err2 != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}
