package locks

import "strings"

// sibling names a key that belongs to a lock's key and lives in the same slot of a cluster. Redisson names its keys
// and channels in this way, too.
func sibling(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}
