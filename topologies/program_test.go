package topologies

import (
	"strings"
	"testing"
)

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

// TestLastWordsHideSecrets: what a program prints before it fails is quoted without the passwords that it was given.
func TestLastWordsHideSecrets(t *testing.T) {
	top, err := Outside.Up(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = top.Close() }()
	p := &Program{
		Command: `echo "cannot log in: $REDIS_URL, $DB_PASSWORD, redis://app@10.0.0.1"; exit 3`,
		Whole:   `echo "cannot log in: $REDIS_URL, $DB_PASSWORD, redis://app:hunter2@10.0.0.1"; exit 3`,
		Env:     []string{"REDIS_URL=redis://:p%40ss@127.0.0.1:1/0", "DB_PASSWORD=s3cret", "REDIS_PASSWORD="},
	}
	if err := top.Run(p); err != nil {
		t.Fatal(err)
	}
	<-p.Ending()
	why := p.Ended()
	for _, secret := range []string{"hunter2", "p%40ss", "p@ss", "s3cret"} {
		if strings.Contains(why, secret) {
			t.Errorf("%q is shown: %s", secret, why)
		}
	}
	if want := "redis://:***@127.0.0.1:1/0, ***, redis://app:***@10.0.0.1"; !strings.Contains(why, want) {
		t.Errorf("%s, want %s", why, want)
	}
}
