package history

import (
	"encoding/binary"
	"errors"
	"time"
)

// AppendOps encodes operations to send them to another machine, and appends them to b. The encoding is that of a
// native file. A Visit, which files do not have, is followed by its Released and Began.
func AppendOps(b []byte, ops []Op) []byte {
	var prev time.Duration
	for i := range ops {
		at := len(b)
		b = append(b, make([]byte, recordMax+recordSlack)...)
		b = b[:putRecord(b, at, &ops[i], prev)]
		if ops[i].Kind == Visit { // files have no Visit
			b = binary.LittleEndian.AppendUint64(b, uint64(ops[i].Released))
			b = binary.LittleEndian.AppendUint64(b, uint64(ops[i].Began))
		}
		if ops[i].Return != Forever {
			prev = ops[i].Return
		}
	}
	return b
}

var errBatch = errors.New("not operations")

// ParseOps decodes the output of AppendOps.
func ParseOps(b []byte) (ops []Op, err error) {
	n := len(b)
	b = append(b[:n:n], make([]byte, recordMax+recordSlack)...)
	var prev time.Duration
	for p := 0; p < n; {
		var op Op
		next, ok := record(b, p, &op, prev)
		if !ok || next > n {
			return nil, errBatch
		}
		if op.Kind == Visit && next+16 > n {
			return nil, errBatch
		}
		if op.Kind == Visit {
			op.Released = time.Duration(binary.LittleEndian.Uint64(b[next:]))
			op.Began = time.Duration(binary.LittleEndian.Uint64(b[next+8:]))
			next += 16
		}
		if op.Return != Forever {
			prev = op.Return
		}
		ops, p = append(ops, op), next
	}
	return ops, nil
}
