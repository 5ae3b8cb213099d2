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

// interpreter carries scripts out for the servers in memory. They make a Lua state for each call, which costs more than
// all else together; this one is kept. Nothing of a script stays in it: globals cannot be made.
type interpreter struct {
	state    *lua.LState
	compiled map[string]*lua.FunctionProto // nil for a script that is left to the server
	server   *server.Server
	peer     *server.Peer // its own, for the commands of scripts
	effects  int          // how many commands of the last script may have changed something
	answer   bytes.Buffer
	in       *bufio.Reader
	failed   error // of the last command that a script called and that ended it
}

// plain is what scripts use of redis here, special what is left to the servers, when nothing plain is in the text any
// more.
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

// open makes a state with what scripts may use.
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

// compile prepares a script. It returns nil for one that is left to the server, as it is if it cannot be compiled.
func (i *interpreter) compile(script string) *lua.FunctionProto {
	proto, known := i.compiled[script]
	if known {
		return proto
	}
	if chunk, err := parse.Parse(strings.NewReader(script), "user_script"); err == nil &&
		!special.MatchString(plain.ReplaceAllString(script, "")) {
		if proto, err = lua.Compile(chunk, "user_script"); err == nil { // else the server says what is wrong
			proto.IsVarArg = 0 // no script reads its varargs, so none are made
		}
	}
	i.compiled[script] = proto
	return proto
}

// run carries a request for a script out: eval, text, number of keys, keys, arguments. It reports whether it has: if
// not, the server has to. Requests are carried out one at a time, so nothing comes between the commands of a script.
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
		i.state = nil // what a script left half done is gone with it
		to.WriteError(said(i.failed, err))
		return true
	}
	respond(to, l.Get(-1))
	l.SetTop(0)
	return true
}

// said is what a script that failed is answered with: the error of its command, or its own.
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

// call is redis.call: an error of the command ends the script.
func (i *interpreter) call(l *lua.LState) int {
	v, err := i.command(l)
	if err != nil {
		i.failed = err
		l.Error(lua.LString(err.Error()), 0)
	}
	l.Push(v)
	return 1
}

// pcall is redis.pcall: an error of the command is a value.
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

// answered is an answer that says that nothing was done; empty for all others.
func answered(v any) string {
	switch v {
	case nil:
		return "nil"
	case 0:
		return "0"
	}
	return ""
}

// value is an answer of the server as a script sees it.
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

// respond answers with what a script returned.
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
