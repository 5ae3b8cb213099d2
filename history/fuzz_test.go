package history

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
)

// reseal corrects the checksums and sequence numbers of chunks, so that the fuzzer gets past them.
func reseal(file []byte) []byte {
	file = bytes.Clone(file)
	sequence := uint32(0)
	for i := len(magic); i+headSize <= len(file); sequence++ {
		h, _ := parseHead(file[i:])
		if h.length == 0 {
			h.kind, h.length = uint32(file[i+4]), uint32(file[i+12])|uint32(file[i+13])<<8
		}
		h.length = min(h.length, uint32(len(file)-i-headSize))
		payload := file[i+headSize:][:h.length]
		chunkHead{h.kind, sequence, h.length, crc32.Checksum(payload, castagnoli)}.put(file[i:])
		i += headSize + int(h.length)
	}
	return file
}

// accept expects one of two results: an error with a position, or a valid history that every format preserves.
func accept(t *testing.T, file []byte, read func(io.Reader) (*History, error)) {
	h, err := read(bytes.NewReader(file))
	if err != nil {
		var wrong *formatError
		var problems problemList
		switch {
		case errors.As(err, &wrong) && (wrong.Line > 0 || wrong.Offset >= 0 && wrong.Offset <= int64(len(file))):
		case errors.As(err, &problems) && len(problems) > 0 && len(problems) <= maxProblems:
		default:
			t.Fatalf("an error without a position: %v", err)
		}
		return
	}
	if err := h.Validate(); err != nil {
		t.Fatalf("was accepted but is not valid: %v", err)
	}
	for name, f := range formats {
		var b bytes.Buffer
		if err := f.write(&b, h); err != nil {
			t.Fatal(name, err)
		}
		got, err := f.read(&b)
		if err != nil {
			t.Fatal(name, err)
		}
		got.Started, h.Started = got.Started.UTC(), h.Started.UTC()
		equal(t, got, h)
	}
}

func FuzzRead(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{0, 1, 8, 40} {
		f.Add(chunked(f, generate(r, n), 5))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		accept(t, file, readFile)
		accept(t, reseal(file), readFile)
	})
}

func FuzzReadJSONL(f *testing.F) {
	r := rand.New(rand.NewPCG(10, 10))
	for _, n := range []int{0, 1, 8, 40} {
		var b bytes.Buffer
		if err := WriteJSONL(&b, generate(r, n)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(opening +
		`{"op":"store","id":"s","worker":0,"call_ns":1,"hold":"a","seen":"1.2","note":"\u00e9","token":"t"}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		accept(t, file, readJSONL)
		accept(t, file, readAny)
	})
}
