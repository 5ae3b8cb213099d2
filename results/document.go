package results

// Schema is the version of the JSON document.
const Schema = 1

// Document is what --json prints: all runs of a command and how it ended.
type Document struct {
	Schema int          `json:"schema"`
	Exit   Exit         `json:"exit"`
	Runs   []Run        `json:"runs"`
	Gates  []GateResult `json:"gates,omitempty"`
}

// Exit says how a command ended.
type Exit struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}
