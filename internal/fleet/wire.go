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

// protocol is the version of the messages in this file.
const protocol = 1

// The subjects. Those that end with a dot are completed by an agent's epoch.
const (
	joinSubject  = "join"
	clockSubject = "clock"
	frameSubject = "frame"
	finalSubject = "final"
	orderSubject = "order."
	ackSubject   = "ack."
)

// hello is an agent's announcement. The agent repeats it while it waits for work.
type hello struct {
	Protocol int
	Version  string
	Name     string
	Epoch    string // drawn at its start, because process ids repeat in containers
	Host     string
	CPUs     int
	Machine  string // identifies its clock: agents with the same Machine share a clock
}

type welcome struct {
	Refused string // reason why the agent cannot be used; empty if it can
}

// plan has the facts that an agent needs for a run: data, and names of parts that its own program has.
type plan struct {
	Run     string
	Orders  crew.Orders
	Lock    string
	Counter string
	Share   crew.Share
	Timeout time.Duration // a side that hears nothing for this long gives up
}

// sum returns a checksum of the plan. With it, the agent confirms the plan that it has.
func (p *plan) sum() (string, error) {
	b, err := json.Marshal(p)
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8]), err
}

// resolve looks up the names in the plan.
func (p *plan) resolve(known crew.Catalogue) error {
	if !p.Orders.Resolve(known, p.Lock, p.Counter) {
		return fmt.Errorf("it has no lock %q or no counter %q", p.Lock, p.Counter)
	}
	return nil
}

const (
	doPlan   = "plan"   // prepare
	doArm    = "arm"    // the run begins at At
	doGo     = "go"     // the run does begin, since all agents are armed
	doStop   = "stop"   // finish the visits in progress, and stop
	doEnd    = "end"    // end immediately
	doCatch  = "catch"  // stop the next worker at a point
	doForget = "forget" // cancel a catch
	doFree   = "free"   // let the caught worker continue, or die
	doSignal = "signal" // send a signal to the worker process
	doKill   = "kill"   // kill the agent and its worker process
	doPause  = "pause"  // pause both for the time For
	doCut    = "cut"    // cut the network between the worker process and all servers
	doMend   = "mend"   // restore that network
)

// order is a request of the coordinator to an agent.
type order struct {
	Do     string
	Run    string
	Plan   *plan          `json:",omitempty"`
	At     int64          `json:",omitempty"` // time on the agent's machine's clock
	ID     int            `json:",omitempty"` // number of the catch
	Point  workload.Point `json:",omitempty"`
	Key    int32          `json:",omitempty"`
	Die    bool           `json:",omitempty"`
	Signal int            `json:",omitempty"`
	For    time.Duration  `json:",omitempty"`
}

type answer struct {
	Error     string        `json:",omitempty"`
	Exchanges []exchange    `json:",omitempty"` // those since the last message
	Slack     time.Duration `json:",omitempty"` // reply to doPlan: difference between the clocks of its processes
	Plan      string        `json:",omitempty"` // reply to doPlan: checksum of its plan
	Views     []string      `json:",omitempty"` // reply to doPlan: the servers that it sees
	Caught    bool          `json:",omitempty"`
	Worker    int32         `json:",omitempty"` // the caught worker
	Key       int32         `json:",omitempty"`
	Hold      history.ID    `json:",omitempty"`
}

// ack tells an agent which of its frames were received, and which were written.
type ack struct {
	Run      string
	Received uint64
	Written  uint64
	Lost     string // reason why no more frames are accepted; empty if they are
}

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
		_ = m.Respond(b) // an error does not matter: the sender repeats a request without an answer
	}
}

func introduce(name, epoch, version string) hello {
	host, _ := os.Hostname() // an error does not matter, since the name is only displayed
	return hello{Protocol: protocol, Version: version, Name: cmp.Or(name, host), Epoch: epoch, Host: host,
		CPUs: runtime.NumCPU(), Machine: machine()}
}

// machine identifies the clock that all processes of this machine share; empty if unknown. A time namespace has its
// own clock.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/time")
	if err != nil || err2 != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}
