package model

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestAloneCallsWithoutAnAnswer: if dozens of calls may or may not have had their effect, no state covers another one.
// Comparing the states once took ten minutes. In this page messages were lost, and the lock acquires again if an
// extension finds it gone. The columns of the file are hold, kind, unanswered, from, to and lease.
func TestAloneCallsWithoutAnAnswer(t *testing.T) {
	const most = 10 * time.Second // it takes half a second
	text, err := os.ReadFile("testdata/unanswered.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{Rules: Rules{Expires: true, Owned: true, Single: true, Sites: 1, Round: 2 * time.Millisecond,
		Patient: 20 * time.Millisecond}}
	for line := range strings.Lines(string(text)) {
		c, unanswered := Call{ID: history.ID(len(p.Calls) + 1)}, 0
		if _, err := fmt.Sscan(line, &c.Hold, &c.Kind, &unanswered, &c.From, &c.To, &c.TTL); err != nil {
			t.Fatal(err)
		}
		if c.Unanswered = unanswered == 1; c.Unanswered {
			c.To = history.Forever
		}
		for int(c.Hold) >= len(p.Holds) {
			p.Holds = append(p.Holds, Hold{ID: history.ID(len(p.Holds) + 1)})
		}
		p.Calls = append(p.Calls, c)
	}
	begun, ended := time.Now(), make(chan Story, 1)
	go func() { ended <- Explain(p, Bounds{States: 10_000, All: 1_000_000}) }()
	select {
	case s := <-ended:
		t.Logf("status %d after %v", s.Status, time.Since(begun))
	case <-time.After(most):
		t.Errorf("no end within %v", most)
	}
}
