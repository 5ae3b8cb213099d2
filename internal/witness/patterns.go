package witness

import (
	"path"
	"slices"
	"strings"
)

// Pattern returns the first pattern that matches a key. The key's lock is counted under that pattern.
func (o *Options) Pattern(key string) string {
	i := slices.IndexFunc(o.Locks, func(p string) bool { return matches([]string{p}, key) })
	return o.Locks[max(i, 0)]
}

func matches(patterns []string, key string) bool {
	for _, p := range patterns {
		if head, ok := strings.CutSuffix(p, "*"); ok && !strings.ContainsAny(head, `*?[\`) {
			if strings.HasPrefix(key, head) {
				return true
			}
			continue
		}
		if ok, err := path.Match(p, key); ok && err == nil {
			return true
		}
	}
	return false
}

// mostElsewhere is the number of other keys whose names are kept.
const mostElsewhere = 3

// elsewhere records a key that is no lock, until a lock is seen. If none is ever seen, the patterns are wrong.
func (r *Reader) elsewhere(key string) {
	if r.Requests+r.Effects > 0 || matches(r.o.Data, key) {
		return
	}
	if len(r.Elsewhere) < mostElsewhere && !slices.Contains(r.Elsewhere, key) {
		r.Elsewhere = append(r.Elsewhere, key)
	}
}
