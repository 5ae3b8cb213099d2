package matrix

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"hammerlock/checker"
)

// known are the causes that checkers name. A rule with another one could never be met.
var known = []string{
	"double-grant", "foreign-release", "service-loss", "silent-reacquire", "over-claim", "renewal-failure", "phantom", "overrun",
	"exclusion", "stale-read", "store-loss", "overwritten", "duplicate", "corrupt", "zombie-write",
	"stale-store", "repeated", "regressed", "no-token", "premature-loss", "false-release", "double-release",
	"deadlock", "stuck", "leak", "ttl-too-long", "token-changed", "self-refusal", "false-refusal", "count", "order", "not-linearizable",
}

// causes looks at the causes of a rule: each is a checker's name, one that checkers name, or both as in
// fencing:stale-store.
func (r *reader) causes(n *yaml.Node, list []string) {
	for i, cause := range list {
		name, of, both := strings.Cut(cause, ":")
		switch {
		case both && isChecker(name) && slices.Contains(known, of):
		case !both && (isChecker(cause) || slices.Contains(known, cause)):
		default:
			r.wrong(n.Content[i], "causes %q: there is %s, or a checker's name", cause, strings.Join(known, ", "))
		}
	}
}

func isChecker(name string) bool {
	return slices.ContainsFunc(checker.All, func(c checker.Checker) bool { return c.Name == name })
}
