package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func kept(text string) string { return string(word(nil, []byte(text))) }

// pieces is a text that arrives in pieces.
type pieces struct {
	in []byte
	*rand.Rand
}

func (p *pieces) Read(b []byte) (n int, err error) {
	if len(p.in) == 0 {
		return 0, io.EOF
	}
	n = copy(b, p.in[:min(len(p.in), 1+p.IntN(1+p.IntN(400)))])
	p.in = p.in[n:]
	return n, nil
}

// values returns the values that a parser reads from a text, up to an error. All bytes are passed on.
func values(t *testing.T, in string, from io.Reader, ofServer bool) (all []string) {
	t.Helper()
	var passed bytes.Buffer
	f, p := newFlow(from, &passed), &command{}
	for {
		left, r, err := maxValues, Reply{}, error(nil)
		if ofServer {
			r, err = f.reply(&left, 0)
		} else {
			err = p.read(f)
		}
		switch {
		case errors.Is(err, errProtocol):
			all, err = append(all, "wrong"), errUnparsed
		case err == nil && ofServer:
			all = append(all, show(r))
		case err == nil:
			all = append(all, strings.Join(p.args, " "))
		}
		if err == nil {
			f.done()
			continue
		}
		if err = f.rest(err); err != nil || passed.String() != in {
			t.Errorf("of %.400q were passed on %.400q: %v", in, passed.Bytes(), err)
		}
		return all
	}
}

// agree tells whether a parser reads the same values from bytes in pieces as from all bytes together.
func agree(t *testing.T, in []byte, seed uint64, ofServer bool) {
	t.Helper()
	got := values(t, string(in), &pieces{in, rand.New(rand.NewPCG(seed, 1))}, ofServer)
	if want := values(t, string(in), bytes.NewReader(in), ofServer); !slices.Equal(got, want) {
		t.Errorf("of %.400q\nin pieces %q\nat once   %q", in, got, want)
	}
}

func TestParsers(t *testing.T) {
	long := strings.Repeat("v", 300)
	for in, want := range map[string]string{
		"*2\r\n$3\r\nget\r\n$1\r\nk\r\nPING\r\n": "GET k|PING", "set k v\n\r\n*0\r\n*-1\r\n": "SET k v|||",
		"*1\r\n$4\r\nPI": "",
		"*2\r\n$3\r\nGET\r\n$300\r\n" + long + "\r\n": "GET " + kept(long), "auth x\r\n": "AUTH ***",
		"get " + long + "\r\n": "GET " + kept(long),
		"PING\r\n*x\r\n":       "PING|wrong", "*1\r\n$-1\r\n": "wrong", "*1\r\n:1\r\n": "wrong",
		"*9999999999\r\n": "wrong", "*1\r\n$99999999999999\r\n": "wrong",
		"*1\n$4\nPING\n": "wrong", "set 'a'\r\n": "wrong",
	} {
		if got := strings.Join(values(t, in, strings.NewReader(in), false), "|"); got != want {
			t.Errorf("command %.100q: got %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"+OK\r\n-ERR no\r\n:-9223372036854775808\r\n":          "OK|-ERR no|-9223372036854775808",
		"$-1\r\n*-1\r\n_\r\n$0\r\n\r\n*0\r\n":                  "nil|nil|nil||[]",
		"*3\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n+x\r\n":             "[1 [a nil] x]",
		"%1\r\n+k\r\n:1\r\n~1\r\n+a\r\n>2\r\n+a\r\n+b\r\n":     "map[k 1]|set[a]|push[a b]",
		"#t\r\n,1.5\r\n(123\r\n=7\r\ntxt:abc\r\n!3\r\nERR\r\n": "t|1.5|123|txt:abc|-ERR",
		"$300\r\n" + long + "\r\n":                             kept(long), "+" + long + "\r\n": kept(long),
		"*100\r\n" + strings.Repeat(":1\r\n", 100) + "+x\r\n": "[" +
			strings.TrimSpace(strings.Repeat("1 ", maxValues-1)) + "]|x",
		"*2\r\n:1\r\n": "", "*2147483648\r\n": "wrong", "%1073741824\r\n": "wrong", "|0\r\n+x\r\n": "wrong",
		"$?\r\n": "wrong", "%-1\r\n": "wrong",
		"?\r\n": "wrong", "\r\n": "wrong", ":x\r\n": "wrong", "+a\n": "wrong",
	} {
		if got := strings.Join(values(t, in, strings.NewReader(in), true), "|"); got != want {
			t.Errorf("reply %.100q: got %q, want %q", in, got, want)
		}
	}
}

var someCommands = []string{
	"*1\r\n$4\r\nPING\r\n", "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$300\r\n" + strings.Repeat("v", 300) + "\r\n", "GET k\r\n",
	"\r\n", "*0\r\n", "*-1\r\n",
	"set \"a \\x41\\n\\\"\" 'it\\'s'\n", "set \"a\"b\r\n", "set \"a\r\n", "*1\r\n$-1\r\n", "*1\r\n:1\r\n", "*x\r\n",
	"*01\r\n", "*1\r\n$0\r\n\r\n",
	"*2\r\n$4\r\nauth\r\n$6\r\nsecret\r\n", "*9999999999\r\n", "*1\r\n$99999999999999\r\n", "*1\n$4\nPING\n",
	"*2\r\n$4\r\nPING\r\n$1\r\nx\r",
}

var someReplies = []string{
	"+OK\r\n", "-ERR no\r\n", ":1\r\n", ":-9223372036854775808\r\n", "$-1\r\n", "*-1\r\n", "$3\r\nabc\r\n",
	"$0\r\n\r\n", "*0\r\n",
	"*3\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n+x\r\n", "%1\r\n+k\r\n:1\r\n", "~2\r\n+a\r\n+b\r\n",
	">3\r\n+subscribe\r\n+c\r\n:1\r\n", "#t\r\n", "#f\r\n", ",1.5\r\n",
	",inf\r\n", "(123\r\n", "=7\r\ntxt:abc\r\n", "!3\r\nERR\r\n", "|1\r\n+ttl\r\n:1\r\n+x\r\n",
	"*2\r\n|1\r\n+ttl\r\n:1\r\n+x\r\n+y\r\n", "|0\r\n+x\r\n",
	"$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n", "*?\r\n+a\r\n*1\r\n+b\r\n.\r\n", "%?\r\n+a\r\n+b\r\n.\r\n", ".\r\n",
	";1\r\n", "*1\r\n.\r\n", "$?\r\n+x\r\n", "=?\r\n",
	"$300\r\n" + strings.Repeat("v", 300) + "\r\n", "+" + strings.Repeat("v", 300) + "\r\n",
	"*100\r\n" + strings.Repeat("*2\r\n+a\r\n+b\r\n", 100),
	strings.Repeat("*1\r\n", 20) + "+x\r\n", "%-1\r\n", "?\r\n", "\r\n", ":x\r\n", "+a\n", "*2147483648\r\n",
	"%1073741824\r\n",
}

// mutated returns consecutive values with a few bytes changed.
func mutated(r *rand.Rand, of []string) (in []byte) {
	for range 1 + r.IntN(4) {
		in = append(in, of[r.IntN(len(of))]...)
	}
	for range r.IntN(3) {
		const some = "*$+-:_#,(!=%~>|;.?0123456789\r\n x\"'\\"
		at := r.IntN(len(in))
		switch r.IntN(3) {
		case 0:
			in[at] = some[r.IntN(len(some))]
		case 1:
			in = slices.Insert(in, at, some[r.IntN(len(some))])
		default:
			if in = slices.Delete(in, at, at+1); len(in) == 0 {
				return in
			}
		}
	}
	return in
}

func TestParsersAgree(t *testing.T) {
	rounds := uint64(100_000)
	if testing.Short() {
		rounds = 5_000
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 0))
		ofServer := seed%2 == 0
		agree(t, mutated(r, map[bool][]string{false: someCommands, true: someReplies}[ofServer]), seed, ofServer)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzCommands(f *testing.F) {
	for _, c := range someCommands {
		f.Add([]byte(c), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) { agree(t, in, seed, false) })
}

func FuzzReplies(f *testing.F) {
	for _, c := range someReplies {
		f.Add([]byte(c), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) { agree(t, in, seed, true) })
}

func TestDepthIsBounded(t *testing.T) {
	for depth, ok := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		left := maxValues
		if _, err := newFlow(strings.NewReader(strings.Repeat("*1\r\n", depth)+"+x\r\n"), io.Discard).reply(&left,
			0); (err == nil) != ok {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
}

func TestHide(t *testing.T) {
	for in, want := range map[string]string{
		"AUTH x": "AUTH ***", "AUTH joe x": "AUTH *** ***",
		"HELLO 3 AUTH joe x SETNAME y": "HELLO 3 AUTH *** *** SETNAME y",
		"HELLO 3 AUTH joe x y SETNAME": "HELLO 3 AUTH *** *** *** ***", "HELLO 3": "HELLO 3",
		"ACL SETUSER joe >x": "ACL SETUSER *** ***", "CONFIG SET a b c d": "CONFIG SET a *** c ***",
		"CONFIG GET a":                       "CONFIG GET a",
		"MIGRATE h 1 k 0 9 AUTH2 u p KEYS a": "MIGRATE h 1 k 0 9 AUTH2 *** *** *** ***",
		"MIGRATE h 1 k 0 9":                  "MIGRATE h 1 k 0 9",
		"SENTINEL SET m auth-pass x":         "SENTINEL SET m *** ***", "SENTINEL MASTERS": "SENTINEL MASTERS",
		"SET AUTH x": "SET AUTH x",
	} {
		args := strings.Fields(in)
		if hide(args); !reflect.DeepEqual(args, strings.Fields(want)) {
			t.Errorf("%s: %v", in, args)
		}
	}
}
