package topologies

import "testing"

// TestProgramsTellHowTheyEnded: by the exit code, whatever they print.
func TestProgramsTellHowTheyEnded(t *testing.T) {
	top, err := Outside.Up(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = top.Close() }()
	for command, want := range map[string]struct{ by, went bool }{
		"true": {true, true}, "echo exit status 0; exit 3": {true, false}, "kill -9 $$": {true, false},
		"read never": {true, false}, "exec sleep 60": {},
	} {
		p := &Program{Command: command}
		if err := top.Run(p); err != nil {
			t.Fatal(err)
		}
		if p.Succeeded() && !want.went {
			t.Errorf("%q: it went well before it ended", command)
		}
		if !want.by {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		<-p.Ending()
		if by := p.Ended() != ""; by != want.by || p.Succeeded() != want.went {
			t.Errorf("%q: ended %t, went well %t, want %t", command, by, p.Succeeded(), want)
		}
	}
}
