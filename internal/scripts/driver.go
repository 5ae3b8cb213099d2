package scripts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	signals "os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// turn is the number of the acquire at which most modes begin to misbehave.
const turn = 20

type message map[string]any

type evil struct {
	mode  string
	out   *os.File
	lines *bufio.Writer

	mu       sync.Mutex
	acquires int
	open     float64            // id of an acquire that has no answer yet
	held     map[string]float64 // acquire that holds the key
	until    map[string]time.Time
	keys     map[float64]string
	fence    int
	count    int       // the owner's holds, in mode "rich"
	queue    []message // waiting acquires, in mode "waits"
	queued   time.Time // when the last of them arrived
}

// EvilDriver is a driver as in docs/DRIVERS.md: a lock in the memory of its process. Each mode misbehaves in one way,
// and the suite must end it in time; mode "right" behaves well. It returns the exit code.
func EvilDriver(mode string, in io.Reader, out *os.File) int {
	e := &evil{mode: mode, out: out, lines: bufio.NewWriterSize(out, 1<<20), held: map[string]float64{},
		until: map[string]time.Time{}, keys: map[float64]string{}, fence: 1 << 30}
	if code := e.prepare(); code >= 0 {
		return code
	}
	requests := bufio.NewScanner(in)
	requests.Buffer(nil, 1<<20)
	for requests.Scan() {
		var m message
		if json.Unmarshal(requests.Bytes(), &m) != nil {
			return 9
		}
		if e.errs(m) {
			continue
		}
		if code := e.serve(m); code >= 0 {
			return code
		}
	}
	if mode == "stubborn" {
		forever()
	}
	return 0
}

func forever() { <-make(chan struct{}) }

// prepare does the mode's work before the first request; a code of 0 or more ends the program.
func (e *evil) prepare() int {
	hello := message{"hello": "hammerlock-driver", "protocol": 1, "name": "evil-" + e.mode, "version": "1",
		"claims": []string{"excludes", "expires", "owned"}}
	switch e.mode {
	case "no-hello":
		forever()
	case "dies-at-once":
		fmt.Fprintln(os.Stderr, "cannot import redis")
		return 7
	case "other-version":
		hello["protocol"] = 2
	case "wrong-claim":
		hello["claims"] = []string{"excludes", "perfect"}
	case "falling":
		hello["claims"] = []string{"excludes", "expires", "owned", "fences"}
	case "waits", "insists":
		hello["claims"] = []string{"excludes", "expires", "owned", "waits"}
	case "maybe-busy":
		hello["claims"] = []string{"excludes", "expires", "owned", "busy_may_lie"}
	case "several":
		hello["claims"] = []string{"excludes", "expires", "owned", "sets", "crosses"}
	case "shares":
		hello["claims"] = []string{"excludes", "expires", "owned", "readers", "upgrades"}
	case "permits":
		hello["permits"] = 3
	case "rich":
		hello["claims"] = []string{"excludes", "expires", "owned", "reentrant"}
	case "stubborn":
		signals.Ignore(syscall.SIGTERM)
	case "parent", "daemon":
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: e.mode == "daemon"}
		if child.Start() != nil {
			return 8
		}
		_ = os.WriteFile(os.Getenv("TMPDIR")+"/grandchild", []byte(fmt.Sprint(child.Process.Pid)), 0o600)
	case "floods-err":
		go func() {
			for {
				fmt.Fprintln(os.Stderr, strings.Repeat("e", 1000))
			}
		}()
	}
	fmt.Fprintln(e.lines, "starting up: this line is no message")
	e.say(hello)
	return -1
}

func (e *evil) say(m message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	line, _ := json.Marshal(m)
	fmt.Fprintf(e.lines, "%s\n", line)
	if e.mode != "no-flush" {
		_ = e.lines.Flush()
	}
}

// errorsOf maps a mode and a kind of call to the error with which every such call is answered.
var errorsOf = map[string]string{
	"refuses-all acquire":  `"client" must be instance of Client`,
	"release-errs release": "CROSSSLOT Keys in request don't hash to the same slot",
}

// wrongTypes maps a mode to an answer to acquire with a field of a wrong type.
var wrongTypes = map[string]message{
	"id-as-text":  {"id": "7", "busy": true},
	"large-fence": {"id": 7, "ok": true, "token": "t", "fence": json.Number("1180591620717411303424")},
}

// errs sends an answer of wrongTypes or errorsOf, if the mode has one for this request. It returns false if the
// request still needs an answer.
func (e *evil) errs(m message) bool {
	if wrong := wrongTypes[e.mode]; wrong != nil && m["op"] == "acquire" {
		e.say(wrong)
	}
	text := errorsOf[e.mode+" "+m["op"].(string)]
	if text != "" {
		e.say(message{"id": m["id"], "error": text})
	}
	return text != ""
}

// serve answers a request; a code of 0 or more ends the program.
func (e *evil) serve(m message) int {
	id := m["id"].(float64)
	answer := message{"id": id, "ok": true}
	switch op := m["op"]; {
	case op == "open" && e.mode == "dies-opening":
		return 5
	case op == "acquire" && m["key"] == "until-called-off":
		e.open = id
		return -1
	case op == "cancel" && m["of"] == e.open:
		e.say(message{"id": e.open, "busy": true})
	case op == "reenter":
		if hold := m["hold"].(float64); e.held[e.keys[hold]] == hold {
			e.count++
			answer["count"] = e.count
		} else {
			answer = message{"id": id, "lost": true}
		}
	case op == "acquire" && e.mode == "insists" && m["wait_ms"] == 0.0:
		fmt.Fprintln(os.Stderr, "asked not to wait")
		return 6
	case op == "acquire":
		if e.acquires++; e.acquires >= turn {
			if code, said := e.misbehave(id); said {
				return code
			}
		}
		if e.acquire(m, answer); e.mode == "waits" && answer["busy"] == true && m["wait_ms"].(float64) > 0 {
			e.queue, e.queued = append(e.queue, m), time.Now()
			return -1
		}
	case op == "release":
		if e.mode == "ok-after-lost" {
			e.say(message{"event": "lost", "hold": m["hold"]})
		}
		hold := m["hold"].(float64)
		if e.count--; e.mode == "rich" && e.count > 0 {
			break
		}
		if key := e.keys[hold]; e.held[key] == hold {
			delete(e.held, key)
		} else {
			answer = message{"id": id, "lost": true}
		}
		if len(e.queue) > 0 { // the first waiter is granted the lock
			granted := message{"id": e.queue[0]["id"], "ok": true, "tried_ms": time.Since(e.queued).Milliseconds()}
			e.acquire(e.queue[0], granted)
			e.queue = e.queue[1:]
			e.say(granted)
		}
	case op == "close" && e.mode == "stubborn":
		return -1
	case op == "ping" && e.mode == "sleepy":
		<-time.After(time.Second)
	case op == "ping" && e.mode == "slow":
		<-time.After(60 * time.Millisecond)
	}
	e.say(answer)
	return -1
}

// acquire grants a key that is free or whose lease has ended.
func (e *evil) acquire(m, answer message) {
	if m["key"] == "lost-at-once" {
		e.say(message{"event": "lost", "hold": m["id"]})
	}
	key, id := m["key"].(string), m["id"].(float64)
	if e.mode == "several" { // it locks the last key only: a suite that sends just the first is never refused
		keys := m["keys"].([]any)
		key = keys[len(keys)-1].(string)
	}
	if e.mode == "shares" || e.mode == "permits" { // it grants everything and reports mode and permits of the request
		e.keys[id], e.held[key], answer["token"] = key, id, fmt.Sprint(m["mode"], m["permits"])
		return
	}
	if _, taken := e.held[key]; taken && time.Now().Before(e.until[key]) {
		delete(answer, "ok")
		if answer["busy"] = true; e.mode == "rich" {
			answer["token"] = fmt.Sprint("t", id)
		}
		return
	}
	e.held[key], e.keys[id] = id, key
	e.until[key] = time.Now().Add(time.Duration(m["ttl_ms"].(float64)) * time.Millisecond)
	if e.mode != "tokenless" {
		answer["token"] = fmt.Sprint("t", id)
	}
	if e.mode == "rich" { // this is the first hold, with half of the requested lease
		e.count, answer["valid_ms"] = 1, m["ttl_ms"].(float64)/2
	}
	if e.mode == "falling" {
		e.fence--
		answer["fence"] = e.fence
	}
}

// misbehave does what the mode stands for, from the acquire with the number turn on. said is false if the
// request still needs an answer.
func (e *evil) misbehave(id float64) (code int, said bool) {
	first := e.acquires == turn
	switch e.mode {
	case "dies-asked":
		return 6, true
	case "dies-holding":
		e.say(message{"id": id, "ok": true, "token": "t"})
		return 6, true
	case "rejects":
		if first {
			fmt.Fprintln(os.Stderr,
				"(node:1) UnhandledPromiseRejectionWarning: Error: no answer\n    at renew (lock.js:7)")
		}
	case "hangs":
		forever()
	case "never-reads":
		e.say(message{"id": id, "busy": true})
		forever()
	case "half-a-line":
		_, _ = e.out.WriteString(`{"id":`)
		forever()
	case "twice":
		e.say(message{"id": id, "busy": true})
	case "unknown-id":
		e.say(message{"id": id + 1e6, "ok": true})
	case "others-id":
		if e.open == 0 {
			e.open = id
			return -1, true
		}
		e.say(message{"id": e.open, "busy": true})
		e.say(message{"id": e.open, "ok": true, "token": "t"})
	case "garbage":
		if first {
			_, _ = e.out.WriteString("Segmentation fault?\n")
			return -1, true
		}
	case "long-line":
		e.say(message{"id": id, "error": strings.Repeat("x", 70<<10)})
	case "floods-out":
		for {
			if _, err := e.out.WriteString("debug: nothing\n"); err != nil {
				return 4, true
			}
		}
	case "closes-out":
		_ = e.out.Close()
		forever()
	case "lost-unknown":
		e.say(message{"event": "lost", "hold": id + 1e6})
	case "negative":
		e.say(message{"id": id, "ok": true, "valid_ms": -5})
	case "huge":
		e.say(message{"id": id, "ok": true, "valid_ms": 1e15})
	case "undecided":
		e.say(message{"id": id, "ok": true, "busy": true})
	}
	return -1, false
}
