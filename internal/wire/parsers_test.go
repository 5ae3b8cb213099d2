package wire

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// slow reads values from bytes that are all there, one by one, in the obvious way.
type slow struct {
	in     []byte
	at     int
	missed bool // the bytes ended within a value
	wrong  bool // they are no RESP
}

func (s *slow) line(most int) string {
	i := bytes.IndexByte(s.in[s.at:], '\n')
	if n := len(s.in) - s.at; i < 0 && n > most || i > most {
		s.wrong = true
	} else if i < 0 {
		s.missed = true
	}
	if s.wrong || s.missed {
		return ""
	}
	line := string(s.in[s.at : s.at+i])
	s.at += i + 1
	return line
}

// ended takes the carriage return from a line.
func (s *slow) ended(line string) string {
	text, ok := strings.CutSuffix(line, "\r")
	s.wrong = s.wrong || !ok && !s.missed
	return text
}

func (s *slow) bytes(n int64) string {
	if s.wrong || s.missed {
		return ""
	}
	if n+2 > int64(len(s.in)-s.at) {
		s.missed = true
		return ""
	}
	text := string(s.in[s.at : s.at+int(n)])
	s.at += int(n) + 2
	return kept(text)
}

func kept(text string) string {
	if len(text) > maxKept {
		return fmt.Sprintf("sha1:%x:%d", sha1.Sum([]byte(text)), len(text))
	}
	return text
}

func (s *slow) size(text string, least, most int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		s.wrong = s.wrong || !s.missed
		return 0
	}
	return n
}

func (s *slow) command() (args []string) {
	if s.in[s.at] != '*' {
		line := s.line(maxInline)
		s.wrong = s.wrong || strings.ContainsAny(line, `"'`)
		for _, w := range strings.FieldsFunc(line, func(r rune) bool { return r <= ' ' && strings.ContainsRune(" \t\n\v\f\r\x00", r) }) {
			args = append(args, kept(w))
		}
	} else {
		n := s.size(strings.TrimPrefix(s.ended(s.line(maxHeader)), "*"), -1e18, maxLength)
		for i := int64(0); i < n && !s.wrong && !s.missed; i++ {
			head, ok := strings.CutPrefix(s.ended(s.line(maxHeader)), "$")
			s.wrong = s.wrong || !ok && !s.missed
			args = append(args, s.bytes(s.size(head, 0, maxBulk)))
		}
	}
	if s.wrong || s.missed || len(args) == 0 {
		return nil
	}
	if !strings.HasPrefix(args[0], "sha1:") {
		upper := []byte(args[0])
		capitals(upper)
		args[0] = string(upper)
	}
	hide(args)
	return args
}

func (s *slow) reply(depth int) Reply {
	line := s.ended(s.line(maxInline))
	if line == "" {
		s.wrong = s.wrong || !s.missed
		return Reply{}
	}
	text := line[1:]
	switch line[0] {
	case '+', '-', '(', ',':
		return Reply{Kind: map[byte]Kind{'+': Simple, '-': Error, '(': BigNumber, ',': Double}[line[0]], Text: kept(text)}
	case ':':
		n, err := strconv.ParseInt(text, 10, 64)
		s.wrong = s.wrong || err != nil
		return Reply{Kind: Integer, Int: n, Text: fmt.Sprint(n)}
	case '#':
		return Reply{Kind: Bool, Text: text, Int: map[string]int64{"t": 1}[text]}
	case '_':
		return Reply{Kind: Nil}
	case '$', '=', '!':
		return s.long(line[0], text)
	case '*', '~', '>', '%':
		return s.aggregate(line[0], text, depth)
	}
	s.wrong = true
	return Reply{}
}

func (s *slow) long(sign byte, text string) Reply {
	kind := map[byte]Kind{'$': Bulk, '=': Verbatim, '!': Error}[sign]
	if sign == '$' && text == "-1" {
		return Reply{Kind: Nil}
	}
	return Reply{Kind: kind, Text: s.bytes(s.size(text, 0, maxBulk))}
}

func (s *slow) aggregate(sign byte, text string, depth int) Reply {
	if sign == '*' && text == "-1" {
		return Reply{Kind: Nil}
	}
	r := Reply{Kind: map[byte]Kind{'*': Array, '~': Set, '>': Push, '%': Map}[sign], Int: s.size(text, 0, 1e18)}
	if sign == '%' {
		r.Int *= 2
	}
	s.wrong = s.wrong || depth == maxDepth || r.Int > maxLength
	for i := int64(0); i < r.Int && !s.wrong && !s.missed; i++ {
		r.Items = append(r.Items, s.reply(depth+1))
	}
	return r
}

// first keeps the first values of a reply, as the parser does.
func first(r Reply, left *int) Reply {
	*left--
	items := r.Items
	r.Items = nil
	for _, i := range items {
		if *left > 0 {
			r.Items = append(r.Items, first(i, left))
		}
	}
	return r
}

// pieces is a text that comes in pieces.
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

// agree tells whether a parser finds the same values in bytes that come in pieces as the slow one does in all of them, and whether
// all bytes are passed on.
func agree(t *testing.T, in []byte, seed uint64, ofServer bool) {
	t.Helper()
	var passed bytes.Buffer
	f, p, s := newFlow(&pieces{in, rand.New(rand.NewPCG(seed, 1))}, &passed), &command{}, &slow{in: in}
	var got, want []string
	var err error
	for {
		var value string
		if ofServer {
			left := maxValues
			var r Reply
			r, err = f.reply(&left, 0)
			value = fmt.Sprintf("%+v", r)
		} else {
			err = p.read(f)
			value = fmt.Sprintf("%q", p.args)
		}
		if err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%s at %d", value, f.place()))
		f.done()
	}
	bad := errors.Is(err, errProtocol)
	if bad {
		err = errUnparsed
	}
	if err = f.rest(err); err != nil || !bytes.Equal(passed.Bytes(), in) {
		t.Errorf("of %.400q were passed on %.400q: %v", in, passed.Bytes(), err)
	}
	for s.at < len(in) && !s.wrong && !s.missed {
		var value string
		if ofServer {
			left := maxValues
			value = fmt.Sprintf("%+v", first(s.reply(0), &left))
		} else {
			value = fmt.Sprintf("%q", s.command())
		}
		if !s.wrong && !s.missed {
			want = append(want, fmt.Sprintf("%s at %d", value, s.at))
		}
	}
	if !slices.Equal(got, want) || bad != s.wrong {
		t.Errorf("of %.400q\nread   %q, wrong %v\nshould %q, wrong %v", in, got, bad, want, s.wrong)
	}
}

var someCommands = []string{
	"*1\r\n$4\r\nPING\r\n", "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$300\r\n" + strings.Repeat("v", 300) + "\r\n", "GET k\r\n", "\r\n", "*0\r\n", "*-1\r\n",
	"set \"a \\x41\\n\\\"\" 'it\\'s'\n", "set \"a\"b\r\n", "set \"a\r\n", "*1\r\n$-1\r\n", "*1\r\n:1\r\n", "*x\r\n", "*01\r\n", "*1\r\n$0\r\n\r\n",
	"*2\r\n$4\r\nauth\r\n$6\r\nsecret\r\n", "*9999999999\r\n", "*1\r\n$99999999999999\r\n", "*1\n$4\nPING\n", "*2\r\n$4\r\nPING\r\n$1\r\nx\r",
}

var someReplies = []string{
	"+OK\r\n", "-ERR no\r\n", ":1\r\n", ":-9223372036854775808\r\n", "$-1\r\n", "*-1\r\n", "$3\r\nabc\r\n", "$0\r\n\r\n", "*0\r\n",
	"*3\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n+x\r\n", "%1\r\n+k\r\n:1\r\n", "~2\r\n+a\r\n+b\r\n", ">3\r\n+subscribe\r\n+c\r\n:1\r\n", "#t\r\n", "#f\r\n", ",1.5\r\n",
	",inf\r\n", "(123\r\n", "=7\r\ntxt:abc\r\n", "!3\r\nERR\r\n", "|1\r\n+ttl\r\n:1\r\n+x\r\n", "*2\r\n|1\r\n+ttl\r\n:1\r\n+x\r\n+y\r\n", "|0\r\n+x\r\n",
	"$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n", "*?\r\n+a\r\n*1\r\n+b\r\n.\r\n", "%?\r\n+a\r\n+b\r\n.\r\n", ".\r\n", ";1\r\n", "*1\r\n.\r\n", "$?\r\n+x\r\n", "=?\r\n",
	"$300\r\n" + strings.Repeat("v", 300) + "\r\n", "+" + strings.Repeat("v", 300) + "\r\n", "*100\r\n" + strings.Repeat("*2\r\n+a\r\n+b\r\n", 100),
	strings.Repeat("*1\r\n", 20) + "+x\r\n", "%-1\r\n", "?\r\n", "\r\n", ":x\r\n", "+a\n", "*2147483648\r\n", "%1073741824\r\n",
}

// mutated are values one behind the other, with a few bytes changed.
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
		if _, err := newFlow(strings.NewReader(strings.Repeat("*1\r\n", depth)+"+x\r\n"), io.Discard).reply(&left, 0); (err == nil) != ok {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
}

func TestHide(t *testing.T) {
	for in, want := range map[string]string{
		"AUTH x": "AUTH ***", "AUTH joe x": "AUTH *** ***", "HELLO 3 AUTH joe x SETNAME y": "HELLO 3 AUTH *** *** *** ***", "HELLO 3": "HELLO 3",
		"ACL SETUSER joe >x": "ACL SETUSER *** ***", "CONFIG SET a b c d": "CONFIG SET a *** c ***", "CONFIG GET a": "CONFIG GET a",
		"MIGRATE h 1 k 0 9 AUTH2 u p KEYS a": "MIGRATE h 1 k 0 9 AUTH2 *** *** *** ***", "MIGRATE h 1 k 0 9": "MIGRATE h 1 k 0 9",
		"SENTINEL SET m auth-pass x": "SENTINEL SET m *** ***", "SENTINEL MASTERS": "SENTINEL MASTERS", "SET AUTH x": "SET AUTH x",
	} {
		args := strings.Fields(in)
		if hide(args); !reflect.DeepEqual(args, strings.Fields(want)) {
			t.Errorf("%s: %v", in, args)
		}
	}
}
