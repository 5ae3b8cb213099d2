package topologies

import (
	"strings"
	"testing"
	"time"
)

// TestASlotMovesWithItsKeys: keys keep their value and TTL, and all nodes agree. A slot without keys moves too.
func TestASlotMovesWithItsKeys(t *testing.T) {
	t.Parallel()
	top := up(t, "cluster", Options{})
	ctx, site := t.Context(), top.Sites[0]
	for _, key := range []string{"{moves}", "{moves}", "nothing"} {
		owner, err := site.Primary(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if key != "nothing" {
			owner.Do(ctx, "SET", key, "token", "PX", 60_000, "NX")
			owner.Do(ctx, "SET", key+":more", "1")
		}
		from, to, err := site.Move(ctx, key, 5*time.Millisecond)
		if err != nil || from != owner || to == owner {
			t.Fatalf("from %v to %v: %v", from, to, err)
		}
		if now, err := site.Primary(ctx, key); now != to {
			t.Errorf("the owner is %v, %v, want %s", now, err, to.Name)
		}
		if err := from.Do(ctx, "GET", key).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
			t.Errorf("%s says %v", from.Name, err)
		}
		left, err := to.Do(ctx, "PTTL", key).Int64()
		token, more := to.Do(ctx, "GET", key).Val(), to.Do(ctx, "GET", key+":more").Val()
		if key != "nothing" && (token != "token" || more != "1" || left < 1 || left > 60_000) {
			t.Errorf("%s has %v and %v for %d ms: %v", to.Name, token, more, left, err)
		}
	}
}
