package explore

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"bufio"

	"github.com/alicebob/miniredis/v2/server"
)

// scriptsHere use only what the interpreter knows; scriptsThere must be left to the server.
var scriptsHere, scriptsThere = []string{
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`,
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`,
	`return redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", 300)`,
	`local v = redis.pcall("HINCRBY", KEYS[1], ARGV[1], 1) if type(v) == "table" and v.err then return v.err end ` +
		`return {v, redis.call("PTTL", KEYS[1])}`,
	`redis.call("HINCRBY", KEYS[1], ARGV[1], 1) return redis.call("HGETALL", KEYS[1])`,
	`return redis.call("HGET", KEYS[1], "none")`,
	`redis.call("SET", KEYS[1], "x") return redis.call("HGET", KEYS[1], "y")`,
	`redis.call("ZADD", KEYS[1], 1.5, ARGV[1], 2, "b") ` +
		`return {redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES"), {1, {"two", false, 4}}, true}`,
	`return {1, 2, nil, 4}`, `return nil`, `return 3.9`, `return tostring(#KEYS + #ARGV)`,
	`return redis.status_reply("FINE")`, `return {err = "MINE own"}`,
	`stray = 1`, `return stray`, `error("on purpose")`, `return redis.call("NOSUCH")`,
	`return redis.call("SET", KEYS[1], {})`,
	`local t = {} for i = 1, 3 do t[i] = string.format("%02d", i) end ` +
		`return table.concat(t, ",") .. math.max(1, 2) .. (ARGV[2] or "")`,
}, []string{
	`return cjson.encode({1})`, `return redis.sha1hex("a")`, `local r = redis return r.call("GET", KEYS[1])`,
	`return redis.call("BLPOP", KEYS[1], 0)`, `this is no Lua`,
}

// TestScriptsDoAsOnTheServer: the interpreter gives the server's replies and leaves the server's keys. The text of an
// error may differ.
func TestScriptsDoAsOnTheServer(t *testing.T) {
	states := map[string][]string{
		"nothing": nil, "own": {"SET", "p", "t1", "PX", "60000"}, "for ever": {"SET", "p", "t1"},
		"other": {"SET", "p", "t2", "PX", "60000"}, "a hash": {"HSET", "p", "t1", "1"},
	}
	k := newKit()
	for _, script := range scriptsHere {
		for name, state := range states {
			words := []string{"eval", script, "1", "p", "t1", "300"}
			slow, slowLeft := carryOut(t, k, state, func(m *memory, p *server.Peer) { m.Server().Dispatch(p, words) })
			fast, fastLeft := carryOut(t, k, state, func(m *memory, p *server.Peer) {
				if !k.lua.run(m.Miniredis, p, words) {
					t.Errorf("%s is left to the server", script)
				}
			})
			if slow != fast && !(slow[0] == '-' && fast[0] == '-') || slowLeft != fastLeft {
				t.Errorf("%s with %s: the server answers %q and leaves %q, the interpreter %q and %q", script, name,
					slow, slowLeft, fast, fastLeft)
			}
		}
	}
	for _, script := range scriptsThere {
		if k.lua.compile(script) != nil {
			t.Errorf("%s is not left to the server", script)
		}
	}
}

// carryOut makes a request to a server with keys, and returns the reply and the keys that are left.
func carryOut(t *testing.T, k *kit, state []string, do func(*memory, *server.Peer)) (answer, left string) {
	t.Helper()
	servers, err := k.servers(1)
	if err != nil {
		t.Fatal(err)
	}
	m := servers[0]
	defer m.end()
	var out bytes.Buffer
	p := server.NewPeer(bufio.NewWriter(&out))
	if state != nil {
		m.Server().Dispatch(p, state)
		p.Flush()
		out.Reset()
	}
	do(m, p)
	p.Flush()
	return strings.TrimSpace(out.String()), m.Dump() + m.TTL("p").Round(time.Second).String()
}
