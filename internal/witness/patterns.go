package witness

import (
	"path"
	"slices"
	"strings"
)

// Pattern returns the first pattern that matches a key. The key's lock is counted under that pattern.
func (o *Options) Pattern(key string) string {
	if len(o.Locks) == 1 {
		return o.Locks[0]
	}
	i := slices.IndexFunc(o.Locks, func(p string) bool { return matches(patternsOf(p), key) })
	return o.Locks[max(i, 0)]
}

// pattern is a pattern of keys. If it is simple, it matches all keys with its prefix.
type pattern struct {
	text, prefix string
	simple       bool
}

func patternsOf(all ...string) (list []pattern) {
	for _, p := range all {
		prefix, ok := strings.CutSuffix(p, "*")
		list = append(list, pattern{p, prefix, ok && !strings.ContainsAny(prefix, `*?[\`)})
	}
	return list
}

func matches(patterns []pattern, key string) bool {
	for _, p := range patterns {
		if p.simple {
			if strings.HasPrefix(key, p.prefix) {
				return true
			}
			continue
		}
		if ok, err := path.Match(p.text, key); ok && err == nil {
			return true
		}
	}
	return false
}

// mostElsewhere is the largest number of keys that are no locks whose names are kept.
const mostElsewhere = 3

// elsewhere records a key that is no lock, until a lock is seen. If none is ever seen, the patterns are wrong.
func (r *Reader) elsewhere(key string) {
	if r.Requests+r.Effects > 0 || matches(r.data, key) {
		return
	}
	if len(r.Elsewhere) < mostElsewhere && !slices.Contains(r.Elsewhere, key) {
		r.Elsewhere = append(r.Elsewhere, key)
	}
}
