package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"hammerlock/history"
)

// pack collects the data for the page's script: bytes, and a JSON document that refers to ranges of them.
type pack struct{ bytes []byte }

// packed is a range in the bytes of a pack.
type packed struct {
	At   int `json:"at"`
	Size int `json:"size"`
}

func (p *pack) add(b []byte) packed {
	at := packed{len(p.bytes), len(b)}
	p.bytes = append(p.bytes, b...)
	return at
}

// text compresses the length of the document, the document and the bytes. The result is base64url, because HTML
// needs no escapes for it.
func (p *pack) text(document any) (string, error) {
	doc, err := json.Marshal(document)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(doc)))
	for _, part := range [][]byte{head, doc, p.bytes} {
		if _, err := z.Write(part); err != nil {
			return "", err
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b.Bytes()), nil
}

// packedStrip is an ownership whose large parts are ranges of bytes. Outcomes and Reasons give names to the numbers
// in these bytes.
type packedStrip struct {
	*ownership
	Planes   [][planes]packed `json:"planes"` // by tier
	Rows     packed           `json:"rows"`   // visits
	Meets    packed           `json:"meets"`  // overlaps
	Outcomes []string         `json:"outcomes"`
	Reasons  []string         `json:"reasons"`
}

// names lists the names of the values from 0 to last, including last.
func names[T interface {
	~uint8
	String() string
}](last T) (all []string) {
	for v := range last + 1 {
		all = append(all, v.String())
	}
	return all
}

func (p *pack) strip(s *ownership) *packedStrip {
	k := &packedStrip{ownership: s, Planes: make([][planes]packed, len(s.Tiers)), Outcomes: names(history.Failed),
		Reasons: names(history.Other)}
	for i := range s.Tiers {
		for plane := range planes {
			k.Planes[i][plane] = p.add(shares(s.Tiers[i].planes[plane]))
		}
	}
	k.Rows = p.add(packVisits(s.visits))
	k.Meets = p.add(packOverlaps(s.overlaps))
	return k
}

// packer writes small integers in few bytes (varints).
type packer struct{ b []byte }

func (w *packer) numbers(all ...int64) {
	for _, n := range all {
		w.b = binary.AppendVarint(w.b, n)
	}
}

// after writes times as numbers: 2d+1 for a time that is d after base, and 0 for a time that never comes.
func (w *packer) after(base time.Duration, all ...time.Duration) {
	for _, at := range all {
		if at == history.Forever {
			w.numbers(0)
		} else {
			w.numbers(2*int64(at-base) + 1)
		}
	}
}

// packVisits writes most times of a visit as differences from the visit before. The page's script reads the numbers
// in the same order.
func packVisits(visits []stripVisit) []byte {
	w := &packer{}
	var before stripVisit
	var value int64
	for i := range visits {
		v := &visits[i]
		if v.worker != before.worker {
			before.from, before.id = 0, 0
		}
		// Bits 0, 2 and 4 are the lowest bits of the three outcomes. Bit 6: the worker crashed. Bit 7: a try had no
		// reply. Bit 8: the holder learned that it had lost the lock.
		flags := int64(v.store) | int64(v.release)<<2 | int64(v.outcome)<<4 |
			bit(v.crashed)<<6 | bit(v.unknown)<<7 | bit(v.lost != history.Forever)<<8
		w.numbers(int64(v.worker), int64(v.key), int64(v.from-before.from), flags, int64(v.reason), int64(v.tries))
		w.after(v.from, v.end, v.grant)
		if v.grant != history.Forever {
			w.numbers(int64(v.grant-v.call), int64(v.id)-int64(before.id))
			w.after(v.grant, v.load, v.storeCall, v.storeReturn)
			w.numbers(v.value - value)
			w.after(v.grant, v.relCall, v.relReturn, v.until, v.lost)
			before.id, value = v.id, v.value
		}
		before.worker, before.from = v.worker, v.from
	}
	return w.b
}

func packOverlaps(all []overlap) []byte {
	w := &packer{}
	before := time.Duration(0)
	for _, o := range all {
		w.numbers(int64(o.from-before), int64(o.to-o.from), int64(o.a), int64(o.b), int64(o.key), bit(o.late))
		before = o.from
	}
	return w.b
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
