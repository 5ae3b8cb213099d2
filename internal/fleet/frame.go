package fleet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"time"

	"hammerlock/history"
)

// frame is a piece of an agent's records. The agent keeps it until the coordinator has written it.
type frame struct {
	Run    string `json:"run"`
	Agent  string `json:"agent"`  // epoch of the agent; a restarted agent has a new one
	Number uint64 `json:"number"` // counts from 1, without gaps
	// UpTo is the time on the agent's clock up to which this frame completes its history; Forever in the last frame.
	UpTo      time.Duration `json:"up_to_ns"`
	Exchanges []exchange    `json:"exchanges,omitempty"` // those since the last frame
	Kept      int           `json:"kept"`                // bytes of frames that the coordinator has not written yet

	Ops  []history.Op `json:"-"` // operations that returned since the last frame, in the order of their returns
	Open []history.Op `json:"-"` // operations in progress
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A frame is encoded as a CRC-32C of the rest, the length of the head, the head in JSON, and the operations.
// frameHead is the size of the first two parts in bytes.
const frameHead = 8

func (f *frame) put() ([]byte, error) {
	head, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, frameHead, frameHead+len(head)+64*len(f.Ops)), head...)
	b = history.AppendOps(b, f.Ops)
	b = history.AppendOps(b, f.Open)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(head)))
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b, nil
}

var errFrame = errors.New("a broken frame")

func parseFrame(b []byte) (f frame, err error) {
	if len(b) < frameHead || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return f, errFrame
	}
	n := int(binary.LittleEndian.Uint32(b[4:]))
	if n > len(b)-frameHead || json.Unmarshal(b[frameHead:frameHead+n], &f) != nil || f.Number == 0 {
		return f, errFrame
	}
	ops, err := history.ParseOps(b[frameHead+n:])
	if err != nil {
		return f, errFrame
	}
	open := len(ops)
	for open > 0 && ops[open-1].Return == history.Forever {
		open--
	}
	f.Ops, f.Open = ops[:open], ops[open:]
	return f, nil
}

// last returns the latest time in a frame.
func (f *frame) last() (last time.Duration) {
	if f.UpTo != history.Forever {
		last = f.UpTo
	}
	for _, ops := range [][]history.Op{f.Ops, f.Open} {
		for i := range ops {
			if last = max(last, ops[i].Call); ops[i].Return != history.Forever {
				last = max(last, ops[i].Return)
			}
		}
	}
	return last
}
