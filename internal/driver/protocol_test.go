package driver

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestALeaseThatLingers: a program declares how much longer than requested its servers keep a lease.
func TestALeaseThatLingers(t *testing.T) {
	hello := `{"hello":"hammerlock-driver","protocol":1,"name":"x","version":"1","claims":["excludes","expires"]`
	for says, want := range map[string]time.Duration{"": 0, `,"lingers_ms":999`: 999 * time.Millisecond,
		`,"lingers_ms":0`: 0} {
		m, err := read([]byte(hello + says + "}"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.spec([]string{"x"}, nil)
		if err != nil || s.Lingers(time.Second) != want {
			t.Errorf("%q: got %+v, %v, want %v", says, s.Program, err, want)
		}
	}
	for _, what := range []string{"lingers_ms", "least_ms"} {
		m, _ := read([]byte(hello + `,"` + what + `":-1}`))
		if _, err := m.spec([]string{"x"}, nil); err == nil || !strings.Contains(err.Error(), what+" -1") {
			t.Errorf("got %v, want that no lease lasts for less than nothing", err)
		}
	}
}

// TestClaimsThatNeedAnother: some claims apply to one kind of lock only.
func TestClaimsThatNeedAnother(t *testing.T) {
	for says, good := range map[string]bool{`"claims":["crosses"]`: false, `"claims":["sets"]`: true,
		`"claims":["sets","crosses"]`: true,
		`"claims":["readers"]`:        true, `"claims":["upgrades"]`: false, `"claims":["writers"]`: false,
		`"claims":["readers","writers","upgrades"]`: true, `"permits":3,"claims":["excludes"]`: true,
		`"permits":-1,"claims":["excludes"]`: false, `"claims":[]`: false, `"permits":3`: false,
		`"claims":["excludes","busy_is_certain"]`: true, // as older drivers say
		`"permits":3,"claims":["readers"]`:        false, `"permits":3,"claims":["sets"]`: false,
		`"claims":["session"]`: true} {
		m, err := read([]byte(`{"hello":"hammerlock-driver","protocol":1,"name":"x","version":"1",` + says + "}"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.spec([]string{"x"}, nil)
		if (err == nil) != good {
			t.Errorf("%s: got %v", says, err)
		}
		if shares, session := strings.Contains(says, "permits"), strings.Contains(says, "session"); err == nil &&
			(shares != (s.Claims.Permits == 3) || session != s.Session || session && !s.Outlives) {
			t.Errorf("%s: got %+v", says, s)
		}
	}
}

// TestWhatOutlivesAWorker: a program declares that a worker's hold survives the worker. A program whose lock
// renews need not declare it.
func TestWhatOutlivesAWorker(t *testing.T) {
	for says, want := range map[string]bool{`"expires"`: false, `"outlives"`: true, `"renews"`: true} {
		m, err := read([]byte(`{"hello":"hammerlock-driver","protocol":1,"name":"x","version":"1","claims":[` + says +
			"]}"))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := m.spec([]string{"x"}, nil); err != nil || s.Outlives != want {
			t.Errorf("%s: got %v, %v, want %v", says, s.Outlives, err, want)
		}
	}
}

// TestALockThatCannotExtend: if the reply is "unsupported", it is certain that nothing was done. Only
// extend may be answered so.
func TestALockThatCannotExtend(t *testing.T) {
	m, err := read([]byte(`{"id":1,"unsupported":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := (&worker{}).outcome(t.Context(), &m); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	for op, right := range map[string]bool{opExtend: true, opAcquire: false, opRelease: false, opReenter: false} {
		if wrong := m.mistake(op); (wrong == "") != right {
			t.Errorf("%s: got %q", op, wrong)
		}
	}
}
