package checker

import (
	"bufio"
	"encoding/json"

	"hammerlock/history"
)

// certificate writes proofs of verdicts, in the format of history/FORMAT.md: facts, and then a line for each verdict.
type certificate struct {
	*Case
	sweeper *sweeper
	refutes Contradicts
	w       *bufio.Writer
	facts   int
	err     error
	text    []byte

	chained []bool  // by key: the chain of its stores was written
	finals  []int32 // by key: what was read at the end, as index in Ops plus one; 0 = nothing
	place   []int32 // by operation: number of a store in its chain, counted from the last; 0 = outside
	told    string  // why some page has no story; empty if all have one
}

// proof is a line of a certificate.
type proof struct {
	Verdict string   `json:"verdict"`
	Status  Status   `json:"status"`
	Cause   string   `json:"cause,omitempty"`
	Proof   string   `json:"proof,omitempty"`
	Of      []string `json:"of,omitempty"`
	Why     string   `json:"why,omitempty"` // why there is no proof
}

// Contradicts reports whether calls of a small history have no legal order. The program that checks certificates
// supplies it; the judge itself does not.
type Contradicts func(part *history.History, calls []string) bool

func (x *certificate) put(line any) {
	text, err := json.Marshal(line)
	if x.err == nil {
		x.err = err
	}
	x.line(text)
}

func (x *certificate) line(text []byte) {
	if x.facts++; x.err == nil {
		_, x.err = x.w.Write(append(text, '\n'))
	}
}

// id is the name of an operation in the history's file.
func (x *certificate) id(n int32) string { return x.Ops[n].ID.String() }
