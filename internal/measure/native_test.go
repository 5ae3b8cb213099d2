package measure

import (
	"math"
	"testing"
	"time"
)

// TestNativeBuckets: a duration is in the native bucket that Prometheus defines for it.
func TestNativeBuckets(t *testing.T) {
	for d := time.Microsecond; d < 3*time.Hour; d += d/7 + 1 {
		var b Buckets
		b.record(d)
		want := int(math.Ceil(math.Log2(d.Seconds())*8-1e-9)) - NativeFirst
		if want = min(max(want, 0), natives-1); b.Native[want] != 1 {
			t.Fatalf("%v is not in bucket %d", d, want)
		}
	}
	var b Buckets
	b.record(0)
	if b.Native[0]+b.Native[natives-1] != 1 {
		t.Errorf("no time is in %v", b.Native)
	}
}
