package results

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"hammerlock/history"
)

// pack collects what the page's script reads: one document, and bytes that it points into.
type pack struct{ bytes []byte }

// packed is where bytes lie.
type packed struct {
	At   int `json:"at"`
	Size int `json:"size"`
}

func (p *pack) add(b []byte) packed {
	at := packed{len(p.bytes), len(b)}
	p.bytes = append(p.bytes, b...)
	return at
}

// text is the length of the document, the document and the bytes, compressed, in the alphabet that HTML leaves alone.
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

// packedStrip is the strip with the places of its bytes.
type packedStrip struct {
	*ownership
	Planes [][3]packed `json:"planes"` // a tier: held, waited, overlapped
	Rows   packed      `json:"rows"`   // visits
	Meets  packed      `json:"meets"`  // overlaps
}

func (p *pack) strip(s *ownership) *packedStrip {
	k := &packedStrip{ownership: s}
	for i := range s.Tiers {
		t := &s.Tiers[i]
		k.Planes = append(k.Planes, [3]packed{p.add(shares(t.hold)), p.add(shares(t.wait)), p.add(shares(t.overlap))})
	}
	k.Rows = p.add(packVisits(s.visits))
	k.Meets = p.add(packOverlaps(s.overlaps))
	return k
}

// packer writes integers with as few bytes as they need.
type packer struct{ b []byte }

func (w *packer) number(n int64) { w.b = binary.AppendVarint(w.b, n) }

// after writes a time by what it comes after; one that never comes is 0, a time is one more than twice itself.
func (w *packer) after(base, at time.Duration) {
	if at == history.Forever {
		w.number(0)
		return
	}
	w.number(2*int64(at-base) + 1)
}

// packVisits writes visits, each by its difference to the one before. The page's script reads them in the same order.
func packVisits(visits []stripVisit) []byte {
	w := &packer{}
	var before stripVisit
	var value int64
	for i := range visits {
		v := &visits[i]
		if v.worker != before.worker {
			before.from, before.id = 0, 0
		}
		// Bits 0, 2 and 4: outcomes; from 6 on: it crashed, a try had no answer, it was told that the hold was lost.
		flags := int64(v.store) | int64(v.release)<<2 | int64(v.outcome)<<4
		for bit, is := range []bool{v.crashed, v.unknown, v.lost != history.Forever} {
			if is {
				flags |= 1 << (6 + bit)
			}
		}
		w.number(int64(v.worker))
		w.number(int64(v.key))
		w.number(int64(v.from - before.from))
		w.number(flags)
		w.number(int64(v.reason))
		w.number(int64(v.tries))
		w.after(v.from, v.end)
		w.after(v.from, v.grant)
		if v.grant != history.Forever {
			w.number(int64(v.grant - v.call))
			w.number(int64(v.id) - int64(before.id))
			w.after(v.grant, v.load)
			w.after(v.grant, v.storeCall)
			w.after(v.grant, v.storeReturn)
			w.number(v.value - value)
			w.after(v.grant, v.relCall)
			w.after(v.grant, v.relReturn)
			w.after(v.grant, v.until)
			w.after(v.grant, v.lost)
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
		w.number(int64(o.from - before))
		w.number(int64(o.to - o.from))
		w.number(int64(o.a))
		w.number(int64(o.b))
		w.number(int64(o.key))
		late := int64(0)
		if o.late {
			late = 1
		}
		w.number(late)
		before = o.from
	}
	return w.b
}
