package cli

import (
	"hammerlock/results"
	"hammerlock/results/compare"
)

// schema is the version of the JSON documents.
const schema = 1

// Document is what --json prints: all runs of a command and how it ended.
type Document struct {
	Schema int                  `json:"schema"`
	Exit   Exit                 `json:"exit"`
	Runs   []results.Run        `json:"runs"`
	Gates  []compare.GateResult `json:"gates,omitempty"`
}

// Exit says how a command ended.
type Exit struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}
