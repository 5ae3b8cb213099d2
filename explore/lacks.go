package explore

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"hammerlock/checker"
)

// errLacks means that the lock uses a command that the server in memory does not support.
var errLacks = errors.New("the server in memory does not know")

// errElsewhere means that the lock does not use the given servers.
var errElsewhere = errors.New("the lock makes connections of its own, past those and the dialer that it is given: " +
	"virtual time does not reach them")

// errUnrecorded means that the lock renews leases and does not record it.
var errUnrecorded = errors.New("renewals are missing")

func unrecorded(c *checker.Case) error {
	if why := c.Unrecorded(); why != "" {
		return fmt.Errorf("%w: %s", errUnrecorded, why)
	}
	return nil
}

// unknownCommand matches the error reply to an unsupported command, which may be in a script.
var unknownCommand = regexp.MustCompile(`^-(ERR unknown (sub)?command|.*Unknown Redis command)`)

// lack notes that the server in memory does not support a command.
func (w *world) lack(command string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lacks = cmp.Or(w.lacks, strings.ToUpper(command))
}

// lacking returns an error if the lock needs something that the server in memory does not support. A refused
// request for RESP 3 is a reason only if unanswered is true, which means that calls of the lock got no answer.
// Other clients work without RESP 3.
func (w *world) lacking(unanswered bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.lacks != "":
		return fmt.Errorf("%w %s", errLacks, w.lacks)
	case unanswered && w.resp3 > 0:
		return fmt.Errorf("%w HELLO 3 (RESP 3)", errLacks)
	}
	return nil
}

// wants notes whether a client asked for RESP 3 on this connection and has sent no command since.
func (l *link) wants(resp3 bool) {
	if l.resp3 == resp3 {
		return
	}
	l.resp3 = resp3
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if resp3 {
		l.w.resp3++
	} else {
		l.w.resp3--
	}
}
