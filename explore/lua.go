package explore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// interpreter executes scripts in place of the servers in memory. The servers make a new Lua state for each call, which
// costs more than everything else. The interpreter reuses its state. Scripts leave nothing in it, because they cannot
// set globals.
type interpreter struct {
	state    *lua.LState
	compiled map[string]*lua.FunctionProto // script -> compiled form; nil = the server must execute it
	server   *server.Server
	peer     *server.Peer // connection for the commands in scripts
	effects  int          // number of commands of the last script that may have changed a key
	answer   bytes.Buffer
	in       *bufio.Reader
	failed   error // error of the command that ended the script
}

// These patterns decide who executes a script. All matches of the pattern plain are removed from its text. If the
// pattern special matches the rest, the server must execute the script; otherwise the interpreter does.
var (
	plain   = regexp.MustCompile(`\bredis\s*\.\s*(call|pcall|status_reply)\b`)
	special = regexp.MustCompile(
		`\b(redis|server|cjson|cmsgpack|struct|bit|os|debug|require|coroutine|loadstring|` +
			`[gs]etmetatable|rawset|_G)\b|(?i:\bb[lrz]m?(pop|move)|\bbzm?pop|\bxread)`)
)

func newInterpreter() *interpreter {
	i := &interpreter{compiled: map[string]*lua.FunctionProto{}}
	out := bufio.NewWriter(&i.answer)
	i.peer, i.in = server.NewPeer(out), bufio.NewReader(&i.answer)
	return i
}

// open makes a Lua state with the functions that scripts may use.
func (i *interpreter) open() {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	single := func(field string) lua.LGFunction {
		return func(l *lua.LState) int {
			t := l.NewTable()
			t.RawSetString(field, lua.LString(l.CheckString(1)))
			l.Push(t)
			return 1
		}
	}
	l.SetGlobal("redis", l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
		"call": i.call, "pcall": i.pcall, "status_reply": single("ok"),
	}))
	strict := func(l *lua.LState) int {
		l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.ToString(2))
		return 0
	}
	globals := l.G.Global
	globals.Metatable = l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{"__newindex": strict, "__index": strict})
	i.state = l
}

// compile compiles a script. It returns nil if the server must execute the script, or if the script has an error.
func (i *interpreter) compile(script string) *lua.FunctionProto {
	proto, known := i.compiled[script]
	if known {
		return proto
	}
	if chunk, err := parse.Parse(strings.NewReader(script), "user_script"); err == nil &&
		!special.MatchString(plain.ReplaceAllString(script, "")) {
		if proto, err = lua.Compile(chunk, "user_script"); err == nil { // the server reports the error
			proto.IsVarArg = 0 // scripts use no varargs, so Lua need not make them
		}
	}
	i.compiled[script] = proto
	return proto
}

// run executes a request: eval, text, number of keys, keys, arguments. It returns false if the server must execute
// the request. Requests run one after another, so scripts are atomic.
func (i *interpreter) run(m *miniredis.Miniredis, to *server.Peer, words []string) bool {
	proto := i.compile(words[1])
	n, err := strconv.Atoi(words[2])
	if proto == nil || err != nil || n < 0 || n > len(words)-3 {
		return false
	}
	if i.state == nil {
		i.open()
	}
	l := i.state
	i.server, i.failed = m.Server(), nil
	l.G.Global.RawSetString("KEYS", list(l, words[3:3+n]))
	l.G.Global.RawSetString("ARGV", list(l, words[3+n:]))
	l.Push(l.NewFunctionFromProto(proto))
	if err := l.PCall(0, 1, nil); err != nil {
		i.state = nil // a state in which a script has failed is not used again
		to.WriteError(said(i.failed, err))
		return true
	}
	respond(to, l.Get(-1))
	l.SetTop(0)
	return true
}

// said returns the error reply of a failed script: the error of a command if it is not nil, else the script's own
// error.
func said(failed, err error) string {
	var own *lua.ApiError
	switch {
	case failed != nil:
		return failed.Error()
	case errors.As(err, &own) && own.Object != nil:
		return "ERR " + own.Object.String()
	}
	return "ERR " + err.Error()
}

func list(l *lua.LState, words []string) *lua.LTable {
	t := l.CreateTable(len(words), 0)
	for _, w := range words {
		t.Append(lua.LString(w))
	}
	return t
}

// call is Lua's redis.call: an error of the command ends the script.
func (i *interpreter) call(l *lua.LState) int {
	v, err := i.command(l)
	if err != nil {
		i.failed = err
		l.Error(lua.LString(err.Error()), 0)
	}
	l.Push(v)
	return 1
}

// pcall is Lua's redis.pcall: it returns an error of the command as a value.
func (i *interpreter) pcall(l *lua.LState) int {
	v, err := i.command(l)
	if err != nil {
		t := l.NewTable()
		t.RawSetString("err", lua.LString(err.Error()))
		v = t
	}
	l.Push(v)
	return 1
}

func (i *interpreter) command(l *lua.LState) (lua.LValue, error) {
	words := make([]string, 0, l.GetTop())
	for at := 1; at <= l.GetTop(); at++ {
		switch v := l.Get(at); v.Type() {
		case lua.LTString, lua.LTNumber:
			words = append(words, v.String())
		default:
			return nil, errors.New("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	if len(words) == 0 {
		return nil, errors.New("ERR Please specify at least one argument for this redis.call() call")
	}
	name := strings.ToLower(words[0])
	if slices.Contains([]string{"eval", "evalsha", "multi", "exec", "watch", "subscribe"}, name) {
		return nil, errors.New("ERR This Redis command is not allowed from script")
	}
	i.answer.Reset()
	i.in.Reset(&i.answer)
	i.server.Dispatch(i.peer, words)
	i.peer.Flush()
	v, err := server.ParseReply(i.in)
	if !harmless(name, answered(v)) {
		i.effects++
	}
	if err != nil {
		return nil, err
	}
	return value(l, v), nil
}

// answered returns "nil" or "0" for a reply that may mean that the command did nothing; otherwise it
// returns an empty string.
func answered(v any) string {
	switch v {
	case nil:
		return "nil"
	case 0:
		return "0"
	}
	return ""
}

// value converts a server's reply to a Lua value.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case nil:
		return lua.LFalse
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case server.Simple:
		t := l.NewTable()
		t.RawSetString("ok", lua.LString(v))
		return t
	case []any:
		t := l.CreateTable(len(v), 0)
		for _, x := range v {
			t.Append(value(l, x))
		}
		return t
	}
	panic(fmt.Sprintf("an answer of type %T", v))
}

// respond sends the result of a script as a reply.
func respond(to *server.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LBool:
		if v {
			to.WriteInt(1)
		} else {
			to.WriteNull()
		}
	case lua.LNumber:
		to.WriteInt(int(v))
	case lua.LString:
		to.WriteBulk(string(v))
	case *lua.LTable:
		if err, ok := v.RawGetString("err").(lua.LString); ok {
			to.WriteError(string(err))
			return
		}
		if status, ok := v.RawGetString("ok").(lua.LString); ok {
			to.WriteInline(string(status))
			return
		}
		n := 0
		for v.RawGetInt(n+1) != lua.LNil {
			n++
		}
		to.WriteLen(n)
		for at := range n {
			respond(to, v.RawGetInt(at+1))
		}
	default:
		to.WriteNull()
	}
}
