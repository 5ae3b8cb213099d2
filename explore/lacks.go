package explore

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// errLacks says that the lock needs what the server in memory does not know.
var errLacks = errors.New("the server in memory does not know")

// errElsewhere says that the lock does not use the servers that it was given.
var errElsewhere = errors.New("the lock makes connections of its own, past those and the dialer that it is given: " +
	"virtual time does not reach them")

// unknownCommand begins the answer of a server that lacks a command, or one that a script calls.
var unknownCommand = regexp.MustCompile(`^-(ERR unknown (sub)?command|.*Unknown Redis command)`)

// lack takes down that the server in memory does not know a command.
func (w *world) lack(command string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lacks = cmp.Or(w.lacks, strings.ToUpper(command))
}

// lacking says what the lock needs that the server in memory does not know; nil if it knew all. A client that asked for
// RESP 3 may go on without: only a call that was answered an error shows that it does not.
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

// wants takes down whether the connection was asked for RESP 3, and not used since.
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
