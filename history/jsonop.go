package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MarshalJSON writes the operation as a line of a JSON lines file.
func (op Op) MarshalJSON() ([]byte, error) { return appendOp(nil, &op, ""), nil }

// UnmarshalJSON reads the output of MarshalJSON; ids must have the form lane.number.
func (op *Op) UnmarshalJSON(b []byte) error {
	var l line
	if err := l.parse(b); err != nil {
		return err
	}
	if l.has&fields["note"] != 0 {
		return errors.New(`unknown field "note"`)
	}
	for i, id := range l.op.ids() {
		ok := true
		if *id, ok = parseID(l.ids[i]); !ok && len(l.ids[i]) > 0 {
			return fmt.Errorf("%q is not an id of the form lane.number", l.ids[i])
		}
	}
	*op = l.op
	return nil
}

// ids are the operation's own ID and those that it refers to.
func (op *Op) ids() [3]*ID { return [...]*ID{&op.ID, &op.Hold, &op.Seen} }

// appendOp appends the JSON of an operation without the fields that have their default value.
func appendOp(b []byte, op *Op, note string) []byte {
	b = append(append(append(b, `{"op":"`...), op.Kind.String()...), '"')
	id := func(name string, id ID) {
		if id != 0 {
			b = append(append(append(b, `,"`...), name...), `":"`...)
			b = strconv.AppendInt(b, int64(id.Lane()), 10)
			b = append(strconv.AppendUint(append(b, '.'), id.Number(), 10), '"')
		}
	}
	always := func(name string, n int64) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = strconv.AppendInt(b, n, 10)
	}
	number := func(name string, n, usual int64) {
		if n != usual {
			always(name, n)
		}
	}
	text := func(name, s, usual string) {
		if s != usual {
			b = append(append(append(b, `,"`...), name...), `":"`...)
			b = append(append(b, s...), '"')
		}
	}
	id("id", op.ID)
	always("worker", int64(op.Worker))
	number("key", int64(op.Key), -1)
	number("process", int64(op.Process), 0)
	number("due_ns", int64(op.Due), 0)
	always("call_ns", int64(op.Call))
	number("return_ns", int64(op.Return), int64(Forever))
	text("outcome", op.Outcome.String(), "unknown")
	text("reason", op.Reason.String(), "")
	id("hold", op.Hold)
	if op.Token != 0 {
		b = append(b, `,"token":"0x`...)
		b = append(strconv.AppendUint(b, op.Token, 16), '"')
	}
	number("fence", op.Fence, 0)
	number("value", op.Value, 0)
	id("seen", op.Seen)
	if op.Until == Forever {
		text("until_ns", "forever", "")
	} else {
		number("until_ns", int64(op.Until), 0)
	}
	number("ttl_ns", int64(op.TTL), 0)
	text("woken", op.Woken.String(), "at-once")
	number("permits", int64(op.Permits), 0)
	if note != "" {
		quoted, _ := json.Marshal(note) // a string can always be marshalled
		b = append(append(b, `,"note":`...), quoted...)
	}
	return append(b, '}')
}

// line is a parsed line. Its ids are still text, valid until the next line is parsed.
type line struct {
	op   Op
	ids  [3][]byte
	note string
	has  uint32
}

// The bits of the fields in line.has.
var fields = map[string]uint32{
	"op": 1 << 0, "worker": 1 << 1, "call_ns": 1 << 2, "id": 1 << 3, "key": 1 << 4, "process": 1 << 5, "due_ns": 1 << 6,
	"return_ns": 1 << 7, "outcome": 1 << 8, "reason": 1 << 9, "hold": 1 << 10, "token": 1 << 11, "fence": 1 << 12,
	"value": 1 << 13, "seen": 1 << 14, "until_ns": 1 << 15, "ttl_ns": 1 << 16, "woken": 1 << 17, "note": 1 << 18,
	"permits": 1 << 19,
}

func (l *line) parse(b []byte) error {
	*l = line{op: Op{Key: -1, Return: Forever}}
	if err := object(b, l.field); err != nil {
		return err
	}
	for _, need := range []string{"op", "worker", "call_ns"} {
		if l.has&fields[need] == 0 {
			return fmt.Errorf("%q is missing", need)
		}
	}
	return nil
}

func (l *line) field(name []byte, v value) (err error) {
	bit := fields[string(name)]
	if bit == 0 {
		return fmt.Errorf("unknown field %q", name)
	}
	if l.has&bit != 0 {
		return errors.New("is given twice")
	}
	l.has |= bit
	op := &l.op
	switch string(name) {
	case "op":
		op.Kind, err = choose[Kind](kinds[:], v)
	case "id":
		l.ids[0], err = v.name()
	case "hold":
		l.ids[1], err = v.name()
	case "seen":
		l.ids[2], err = v.name()
	case "worker":
		op.Worker, err = integer[int32](v)
	case "key":
		op.Key, err = integer[int32](v)
	case "process":
		op.Process, err = integer[int16](v)
	case "due_ns":
		op.Due, err = integer[time.Duration](v)
	case "call_ns":
		op.Call, err = integer[time.Duration](v)
	case "return_ns":
		op.Return, err = integer[time.Duration](v)
	case "ttl_ns":
		op.TTL, err = integer[time.Duration](v)
	case "until_ns":
		if v.quoted && string(v.text) == "forever" {
			op.Until = Forever
		} else {
			op.Until, err = integer[time.Duration](v)
		}
	case "fence":
		op.Fence, err = integer[int64](v)
	case "value":
		op.Value, err = integer[int64](v)
	case "outcome":
		op.Outcome, err = choose[Outcome](outcomes[:], v)
	case "reason":
		op.Reason, err = choose[Reason](reasons[:], v)
	case "woken":
		op.Woken, err = choose[Wake](wakes[:], v)
	case "permits":
		op.Permits, err = integer[uint16](v)
	case "token":
		op.Token, err = v.token()
	case "note":
		l.note, err = v.note()
	}
	return err
}

func (v value) note() (string, error) {
	if len(v.text) > maxNote {
		return "", errNote
	}
	return string(v.text), v.mustQuote()
}

// token parses 0x... as a number and hashes any other text.
func (v value) token() (uint64, error) {
	if hex, ok := bytes.CutPrefix(v.text, []byte("0x")); ok && len(hex) <= 16 {
		if n, err := strconv.ParseUint(string(hex), 16, 64); err == nil {
			return n, v.mustQuote()
		}
	}
	return Hash(string(v.text)), v.mustQuote()
}

func (v value) mustQuote() error {
	if !v.quoted {
		return errors.New("must be a string")
	}
	return nil
}

func (v value) name() ([]byte, error) {
	if v.quoted && len(v.text) == 0 {
		return nil, errors.New("is empty")
	}
	return v.text, v.mustQuote()
}

func choose[T ~uint8](names []string, v value) (T, error) {
	if err := v.mustQuote(); err != nil {
		return 0, err
	}
	for i, name := range names {
		if string(v.text) == name && name != "?" {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of %s", v.text, strings.TrimPrefix(strings.Join(names, " "), "? "))
}

func integer[T ~int16 | ~uint16 | ~int32 | ~int64](v value) (T, error) {
	n, ok := atoi(v.text)
	if v.quoted || !ok {
		return 0, fmt.Errorf("%.40q is not a whole number", v.text)
	}
	if int64(T(n)) != n {
		return 0, fmt.Errorf("%d is out of range", n)
	}
	return T(n), nil
}

// atoi parses a whole number in JSON syntax.
func atoi(b []byte) (int64, bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	if len(digits) == 0 || digits[0] == '+' || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// parseID parses the output of ID.String.
func parseID(b []byte) (ID, bool) {
	left, right, ok := bytes.Cut(b, []byte("."))
	lane, ok1 := atoi(left)
	n, ok2 := atoi(right)
	if !ok || !ok1 || !ok2 || lane < 0 || lane >= 1<<24-1 || n < 1 || n >= 1<<idLaneShift || left[0] == '-' {
		return 0, false
	}
	return ID(lane+1)<<idLaneShift | ID(n), true
}
