package driver

import (
	"errors"
	"os"
	"testing"
	"time"

	"hammerlock/locks"
)

// TestLateRefusals: a refusal that comes long after wait_ms is counted if the program claims to heed it.
func TestLateRefusals(t *testing.T) {
	t.Parallel()
	const program = `echo '{"hello":"hammerlock-driver","protocol":1,"name":"x","version":"1","claims":["waits"]}'
while read -r ask; do
	id=$(echo "$ask" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case "$ask" in
	*acquire*) sleep 1.5; echo "{\"id\":$id,\"busy\":true}" ;;
	*) echo "{\"id\":$id,\"ok\":true}" ;;
	esac
done`
	s, err := Greet(t.Context(), []string{"sh", "-c", program}, []string{"PATH=" + os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), s, Options{Topology: "single", Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l := p.Worker(nil).(locks.Patient)
	for _, wait := range []time.Duration{2 * time.Second, 100 * time.Millisecond} {
		if _, err := l.AcquireWithin(t.Context(), "k", time.Second, wait); !errors.Is(err, locks.ErrBusy) {
			t.Fatalf("got %v, want that it is busy", err)
		}
	}
	if c := p.Conduct(); c.Late != 1 || c.LateBy < lateAfter {
		t.Errorf("got %d late refusals, by up to %v, want one", c.Late, c.LateBy)
	}
}
