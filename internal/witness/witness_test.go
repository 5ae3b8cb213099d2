package witness

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// told reads a script line by line. "C 1 2 SET lock:1 a NX PX 100 = OK" is a request of connection C that was called
// at 1 ms and answered at 2 ms. An answer of "lost" never came. "! 3 SET lock:1 a PXAT +100" is an effect that was
// read at 3 ms, and "+100" a time of the server's clock in ms. With "&" in place of "!", it belongs to the
// transaction of the effect before. "P 4": a connection is passed on unseen from 4 ms on. "K 5": the programs were
// killed at 5 ms. "T 5 1 replica" is about the tap of server 1. With several servers, requests and effects begin
// with their server's number.
func told(t *testing.T, o Options, lines ...string) (*Reader, *history.History) {
	t.Helper()
	w := newWorld(1)
	tx, several := int64(0), o.Sites > 1 || strings.Contains("\n"+strings.Join(lines, "\n"), "\nT ")
	for _, line := range lines {
		words := strings.Fields(line)
		ms := func(i int) time.Duration {
			f, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return time.Duration(f * float64(time.Millisecond))
		}
		if words[0] == "P" {
			e := wire.Event{Kind: wire.PassedThrough, At: ms(1)}
			w.told = append(w.told, telling{e.At, func(r *Reader) { r.Event(e) }})
			continue
		}
		if words[0] == "X" {
			e := wire.Event{Kind: wire.Closed, At: ms(1), Conn: int64(words[2][0])}
			w.told = append(w.told, telling{e.At, func(r *Reader) { r.Event(e) }})
			continue
		}
		if words[0] == "K" {
			at := ms(1)
			w.told = append(w.told, telling{at, func(r *Reader) { r.Crashed(at) }})
			continue
		}
		if words[0] == "T" {
			e := tapEvent(ms(1), words[2], words[3])
			w.told = append(w.told, telling{e.At, func(r *Reader) { r.Event(e) }})
			continue
		}
		if words[0] == "!" || words[0] == "&" {
			if words[0] == "!" {
				tx++
			}
			args := w.stamped(words[2:])
			server := 0
			if several {
				server, _ = strconv.Atoi(args[0])
				args = args[1:]
			}
			e := &wire.Effect{At: ms(1), Args: args, Tx: tx, Server: server}
			w.told = append(w.told, telling{e.At, func(r *Reader) { r.Effect(e) }})
			continue
		}
		w.say(words, ms(1), ms(2), several)
	}
	return w.read(o)
}

// stamped replaces each +n by the date of n milliseconds.
func (w *world) stamped(words []string) []string {
	args := slices.Clone(words)
	for i, a := range args {
		if n, err := strconv.Atoi(a); err == nil && a[0] == '+' {
			args[i] = strconv.FormatInt(w.ms(time.Duration(n)*time.Millisecond), 10)
		}
	}
	return args
}

// tapEvent returns an event of a server's tap.
func tapEvent(at time.Duration, server, what string) wire.Event {
	n, _ := strconv.Atoi(server)
	e := wire.Event{At: at, Server: n, Replica: what == "replica"}
	switch what {
	case "lost":
		e.Kind = wire.TapLost
	case "replica", "goes-on", "restarted", "misses":
		e.Kind, e.Missing, e.Another = wire.TapBegan, what == "restarted" || what == "misses", what == "restarted"
	}
	return e
}

// say makes a request of a script.
func (w *world) say(words []string, call, end time.Duration, sites bool) {
	at := slices.Index(words, "=")
	args := w.stamped(words[3:at])
	w.number++
	q := &wire.Request{Conn: int64(words[0][0]), Number: w.number, Client: words[0], Call: call}
	if sites {
		q.Server, _ = strconv.Atoi(args[0])
		args = args[1:]
	}
	q.Args = args
	w.told = append(w.told, telling{q.Call, func(r *Reader) { r.Sent(q) }})
	answer := words[at+1]
	n, err := strconv.ParseInt(answer, 10, 64)
	w.told = append(w.told, telling{end, func(r *Reader) {
		q.Return = end
		switch {
		case answer == "lost":
			q.Return, q.Lost = history.Forever, true
		case answer == "nil":
			q.Reply.Kind = wire.Nil
		case err == nil:
			q.Reply = wire.Reply{Kind: wire.Integer, Int: n, Text: answer}
		default:
			q.Reply = wire.Reply{Kind: wire.Simple, Text: answer}
		}
		r.Request(q)
	}})
}

// heard formats the operations on locks, in the order of their calls: kind, token and outcome.
func heard(h *history.History, tokens ...string) (all []string) {
	names := map[uint64]string{}
	for _, token := range tokens {
		names[history.Hash(token)] = token
		names[history.Hash(token+"#2")] = token + "'"
	}
	ops := slices.Clone(h.Ops)
	slices.SortStableFunc(ops, func(a, b history.Op) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Key, b.Key))
	})
	for _, op := range ops {
		switch op.Kind {
		case history.Acquire, history.Extend, history.Release, history.Sight, history.Incident, history.Crash:
			all = append(all, strings.TrimSpace(op.Kind.String()+" "+names[op.Token]+" "+op.Outcome.String()))
		}
	}
	return all
}

const unlock = "EVALSHA f00 1 lock:1"

// shapes are locks, with the operations that must be read.
var shapes = map[string]struct {
	o     Options
	lines []string
	want  []string
}{
	"SET NX, a refused try and a script that releases": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 = nil",
		"A 6 7 " + unlock + " a = 1", "! 8 DEL lock:1"},
		want: []string{"acquire a ok", "acquire b failed", "release a ok"}},
	"an effect before its answer, and long after it": {lines: []string{
		"A 1 5 SET lock:1 a NX PX 1000 = OK", "! 3 SET lock:1 a PXAT +1001", "A 6 7 " + unlock + " a = 1",
		"! 200 DEL lock:1"},
		want: []string{"acquire a ok", "release a ok"}},
	"a lease that ends, found by the next try": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 10 = OK", "! 3 SET lock:1 a PXAT +11", "B 20 21 SET lock:1 b NX PX 100 = OK",
		"! 22 DEL lock:1", "& 22 SET lock:1 b PXAT +120",
		"A 30 31 " + unlock + " a = 0", "B 32 33 " + unlock + " b = 1", "! 34 DEL lock:1"},
		// the purpose of the script was unknown when a asked
		want: []string{"acquire a ok", "acquire b ok", "release b ok"}},
	"a key that ends too early, without a command": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 1000 = OK", "! 3 SET lock:1 a PXAT +1001", "! 10 DEL lock:1"},
		want: []string{"acquire a ok", "incident  ok"}},
	"the grant of an unseen client": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 1000 = nil", "! 3 SET lock:1 x PXAT +1001", "A 4 5 SET lock:1 a NX PX 1000 = nil",
		"! 6 DEL lock:1"},
		want: []string{"acquire x ok", "release x ok", "acquire a failed", "acquire a failed"}},
	"SETNX and EXPIRE": {lines: []string{
		"A 1 2 SETNX lock:1 a = 1", "! 3 SETNX lock:1 a", "A 4 5 PEXPIRE lock:1 100 = 1", "! 6 PEXPIREAT lock:1 +104",
		"A 7 8 DEL lock:1 = 1", "! 9 DEL lock:1"},
		want: []string{"acquire a ok", "extend a ok", "release a ok"}},
	"a DEL of what is another's": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 10 = OK", "! 3 SET lock:1 a PXAT +11", "B 20 21 SET lock:1 b NX PX 100 = OK",
		"! 22 DEL lock:1", "& 22 SET lock:1 b PXAT +120",
		"A 30 31 DEL lock:1 = 1", "! 32 DEL lock:1", "B 40 41 DEL lock:1 = 0"},
		want: []string{"acquire a ok", "acquire b ok", "release a ok", "release b failed"}},
	"the same where the other one is not heard of again": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 10 = OK", "! 3 SET lock:1 a PXAT +11", "B 20 21 SET lock:1 b NX PX 100 = OK",
		"! 22 DEL lock:1", "& 22 SET lock:1 b PXAT +120",
		"A 30 31 DEL lock:1 = 1", "! 32 DEL lock:1"},
		want: []string{"acquire a ok", "acquire b ok", "release b unknown"}},
	"a DEL by a client that held nothing, before the holder's own": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 = nil",
		"B 6 7 DEL lock:1 = 1", "! 8 DEL lock:1", "A 20 21 DEL lock:1 = 0"},
		want: []string{"acquire a ok", "acquire b failed", "release  ok", "release a failed"}},
	"the same, and the holder's script is refused": {lines: []string{
		"A 1 2 SET lock:1 x NX PX 100 = OK", "! 3 SET lock:1 x PXAT +101", "A 4 5 " + unlock + " x = 1",
		"! 6 DEL lock:1",
		"A 11 12 SET lock:1 a NX PX 100 = OK", "! 13 SET lock:1 a PXAT +111", "B 16 17 DEL lock:1 = 1",
		"! 18 DEL lock:1",
		"C 20 21 SET lock:1 b NX PX 100 = OK", "! 22 SET lock:1 b PXAT +120",
		"A 30 31 " + unlock + " a = 0", "C 40 41 " + unlock + " b = 1", "! 42 DEL lock:1"},
		want: []string{"acquire x ok", "release x ok", "acquire a ok", "release  ok", "acquire b ok",
			"release a failed",
			"release b ok"}},
	"the same, both at once": {lines: []string{
		"A 1 2 SET lock:1 x NX PX 100 = OK", "! 3 SET lock:1 x PXAT +101", "A 4 5 " + unlock + " x = 1",
		"! 6 DEL lock:1",
		"A 11 12 SET lock:1 a NX PX 100 = OK", "! 13 SET lock:1 a PXAT +111", "B 16 18 DEL lock:1 = 1",
		"A 16.5 19 " + unlock + " a = 0", "! 19 DEL lock:1", "C 20 21 SET lock:1 b NX PX 100 = OK",
		"! 22 SET lock:1 b PXAT +120", "C 40 41 " + unlock + " b = 1", "! 42 DEL lock:1"},
		want: []string{"acquire x ok", "release x ok", "acquire a ok", "release  ok", "release a failed",
			"acquire b ok",
			"release b ok"}},
	"a DEL over another connection without an answer, and again": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 6 7 DEL lock:1 = lost", "! 8 DEL lock:1",
		"A 20 21 DEL lock:1 = 0"},
		want: []string{"acquire a ok", "release a unknown"}},
	"the same, with a late answer": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 6 30 DEL lock:1 = 1", "! 8 DEL lock:1",
		"A 20 21 DEL lock:1 = 0"},
		want: []string{"acquire a ok", "release a ok"}},
	"a DEL over another connection, by the holder": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 6 7 DEL lock:1 = 1", "! 8 DEL lock:1",
		"A 9 10 SET lock:1 b NX PX 100 = OK", "! 11 SET lock:1 b PXAT +109", "B 12 13 DEL lock:1 = 1",
		"! 14 DEL lock:1"},
		want: []string{"acquire a ok", "release a ok", "acquire b ok", "release b ok"}},
	"the same, of a client that then releases what it lost": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 6 7 DEL lock:1 = 1", "! 8 DEL lock:1",
		"A 9 10 SET lock:1 b NX PX 10 = OK", "! 11 SET lock:1 b PXAT +19", "! 30 DEL lock:1", "B 40 41 DEL lock:1 = 0",
		"A 42 43 DEL lock:1 = 0"},
		want: []string{"acquire a ok", "release a ok", "acquire b ok", "release b unknown"}},
	"a DEL of a client that certainly held nothing": {o: Options{Holder: Holder{By: ByConnection}}, lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "B 6 7 DEL lock:1 = 1", "! 8 DEL lock:1",
		"C 9 10 SET lock:1 b NX PX 100 = OK", "! 11 SET lock:1 b PXAT +109"},
		want: []string{"acquire a ok", "release  ok", "acquire b ok"}},
	"an effect that never comes": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = OK", "! 3 SET lock:1 a PXAT +101", "A 4 5 PEXPIRE lock:1 200 = 1",
		"A 11 12 DEL lock:1 = 1", "! 13 DEL lock:1", "B 20 21 SET lock:1 b NX PX 100 = OK",
		"! 22 SET lock:1 b PXAT +120",
		"C 23 24 DEL lock:1 = 1", "B 30 31 SET lock:1 x NX PX 100 = OK", "! 32 SET lock:1 x PXAT +130",
		"B 40 41 DEL lock:1 = 1", "! 42 DEL lock:1"},
		want: []string{"acquire a ok", "release a ok", "acquire b ok", "acquire x ok", "release x ok"}},
	"a script that releases, and an expiry by another client before it": {lines: []string{
		"A 1 2 SET lock:1 x NX PX 100 = OK", "! 3 SET lock:1 x PXAT +101", "A 4 5 " + unlock + " x = 1",
		"! 6 DEL lock:1",
		"A 11 12 SET lock:1 a NX PX 100 = OK", "! 13 SET lock:1 a PXAT +111", "B 16 18 PEXPIRE lock:1 100 = 1",
		"A 16.5 19 " + unlock + " a = 1", "! 19 PEXPIREAT lock:1 +117", "! 19.5 DEL lock:1"},
		want: []string{"acquire x ok", "release x ok", "acquire a ok", "extend a ok", "release a ok"}},
	"an expiry that is set twice in a millisecond": {lines: []string{
		"A 1 2 SET lock:1 x NX PX 100 = OK", "! 3 SET lock:1 x PXAT +101", "A 4 5 " + unlock + " x = 1",
		"! 6 DEL lock:1",
		"A 11 12 SET lock:1 a NX PX 100 = OK", "! 13 SET lock:1 a PXAT +111", "B 14 14.2 PEXPIRE lock:1 97 = 1",
		"A 14.1 14.4 " + unlock + " a = 1", "! 14.4 PEXPIREAT lock:1 +111", "! 14.5 DEL lock:1"},
		want: []string{"acquire x ok", "release x ok", "acquire a ok", "extend a ok", "release a ok"}},
	"a renewal with SET that takes the lock back": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 10 = OK", "! 3 SET lock:1 a PXAT +11", "B 20 21 SET lock:1 b NX PX 100 = OK",
		"! 22 DEL lock:1", "& 22 SET lock:1 b PXAT +120",
		"A 30 31 SET lock:1 a PX 100 = OK", "! 32 SET lock:1 a PXAT +130"},
		want: []string{"acquire a ok", "acquire b ok", "extend a ok"}},
	"a retried SET NX that its own grant refused": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = lost", "! 3 SET lock:1 a PXAT +101", "A 10 11 SET lock:1 a NX PX 100 = nil"},
		want: []string{"acquire a failed", "sight a ok"}},
	"the same, noticed": {lines: []string{
		"A 1 2 SET lock:1 a NX PX 100 = lost", "! 3 SET lock:1 a PXAT +101", "A 10 11 SET lock:1 a NX PX 100 = nil",
		"A 12 13 " + unlock + " a = 1", "! 14 DEL lock:1"},
		want: []string{"acquire a unknown", "release a ok"}},
	"a retried SET NX that may have had no effect": {lines: []string{
		"T 1 0 lost", "A 2 3 0 SET lock:1 a NX PX 100 = lost", "B 4 5 0 SET lock:1 b NX PX 100 = OK",
		"A 10 11 0 SET lock:1 a NX PX 100 = nil"},
		want: []string{"acquire a unknown", "acquire b ok", "acquire a failed"}},
	"a refusal before a try that was lost": {lines: []string{
		"B 1 2 0 SET lock:1 b NX PX 100 = OK", "! 3 0 SET lock:1 b PXAT +101", "A 4 5 0 SET lock:1 a NX PX 100 = nil",
		"A 6 7 0 SET lock:1 a NX PX 100 = lost", "T 8 0 lost"},
		want: []string{"acquire b ok", "acquire a failed", "acquire a unknown"}},
	"a failover that keeps a grant": {lines: []string{
		"T 0 1 replica", "A 1 2 0 SET lock:1 a NX PX 1000 = OK", "! 3 0 SET lock:1 a PXAT +1001",
		"! 3 1 SET lock:1 a PXAT +1001", "T 4 0 lost", "T 5 1 lost", "T 6 1 goes-on",
		"B 7 8 1 SET lock:1 b NX PX 1000 = nil", "A 9 10 1 DEL lock:1 = 1", "! 11 1 DEL lock:1", "T 12 0 replica",
		"B 13 14 1 SET lock:1 b NX PX 1000 = OK",
		"! 15 1 SET lock:1 b PXAT +1013", "! 15 0 SET lock:1 b PXAT +1013", "B 16 17 1 DEL lock:1 = 1",
		"! 18 1 DEL lock:1", "! 18 0 DEL lock:1"},
		want: []string{"acquire a ok", "acquire b failed", "release a ok", "acquire b ok", "release b ok"}},
	"a failover that forgets a grant": {lines: []string{
		"T 0 1 replica", "A 1 2 0 SET lock:1 a NX PX 1000 = OK", "! 3 0 SET lock:1 a PXAT +1001", "T 4 0 lost",
		"T 5 1 lost", "T 6 1 goes-on",
		"B 7 8 1 SET lock:1 b NX PX 1000 = OK", "! 9 1 SET lock:1 b PXAT +1007"},
		want: []string{"acquire a ok", "acquire b ok"}},
	"a server that was restarted": {lines: []string{
		"A 1 2 0 SET lock:1 a NX PX 1000 = OK", "! 3 0 SET lock:1 a PXAT +1001", "T 4 0 lost", "T 5 0 restarted"},
		want: []string{"acquire a ok", "incident  ok"}},
	"effects that are missing": {lines: []string{
		"A 1 2 0 SET lock:1 a NX PX 1000 = OK", "! 3 0 SET lock:1 a PXAT +1001", "T 4 0 lost", "T 5 0 misses"},
		want: []string{"acquire a ok", "release a unknown"}},
	"a pipeline, two at once": {lines: []string{
		"A 1 4 SET lock:1 a NX PX 100 = OK", "A 1.1 4.1 EXPIRE lock:1 1 = 1", "! 3 SET lock:1 a PXAT +101",
		"! 3.1 PEXPIREAT lock:1 +1001"},
		want: []string{"acquire a ok", "extend a ok"}},
	"a hash that counts, as Redisson's": {lines: []string{
		"A 1 2 EVAL s 1 lock:1 100 u:1 = nil", "! 3 HINCRBY lock:1 u:1 1", "& 3 PEXPIREAT lock:1 +101",
		"A 4 5 EVAL s 1 lock:1 100 u:1 = nil", "! 6 HINCRBY lock:1 u:1 1", "& 6 PEXPIREAT lock:1 +104",
		"B 7 8 EVAL s 1 lock:1 100 u:2 = 96", "A 9 10 EVAL f 1 lock:1 100 u:1 = 0", "! 11 HINCRBY lock:1 u:1 -1",
		"& 11 PEXPIREAT lock:1 +110", "A 12 13 EVAL f 1 lock:1 100 u:1 = 1", "! 14 DEL lock:1"},
		want: []string{"acquire u:1 ok", "acquire u:1 ok", "acquire u:2 failed", "release u:1 ok", "release u:1 ok"}},
	"a sorted set, as semaphores are": {lines: []string{
		"A 1 2 EVAL s 1 lock:1 a = 1", "! 3 ZADD lock:1 1 a", "& 3 PEXPIREAT lock:1 +101",
		"B 4 5 EVAL s 1 lock:1 b = 1", "! 6 ZADD lock:1 2 b", "& 6 PEXPIREAT lock:1 +104",
		"A 7 8 ZREM lock:1 a = 1", "! 9 ZREM lock:1 a", "B 10 11 ZREM lock:1 b = 1", "! 12 ZREM lock:1 b"},
		want: []string{"acquire a ok", "acquire b ok", "release a ok", "release b ok"}},
	"a majority of three sites": {o: Options{Sites: 3}, lines: []string{
		"A 1 2 0 SET lock:1 a NX PX 100 = OK", "! 3 0 SET lock:1 a PXAT +101", "A 1 2 1 SET lock:1 a NX PX 100 = OK",
		"! 3 1 SET lock:1 a PXAT +101", "A 1 2.5 2 SET lock:1 a NX PX 100 = nil",
		"B 4 5 0 SET lock:1 b NX PX 100 = nil", "B 4 5 1 SET lock:1 b NX PX 100 = nil",
		"B 4 5 2 SET lock:1 b NX PX 100 = OK", "! 6 2 SET lock:1 b PXAT +104",
		"A 7 8 0 " + unlock + " a = 1", "! 9 0 DEL lock:1", "A 7 8 1 " + unlock + " a = 1", "! 9 1 DEL lock:1"},
		want: []string{"acquire a ok", "acquire b failed", "release a ok"}},
}

// TestShapes: each kind of lock is read correctly.
func TestShapes(t *testing.T) {
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			c.o.Holder.By = cmp.Or(c.o.Holder.By, Auto)
			_, h := told(t, c.o, c.lines...)
			if got := heard(h, "a", "b", "x", "u:1", "u:2"); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if err := h.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKilledOnTheWay: when the programs are killed, clients die that have the lock, wait for it, or are about to get a
// reply.
func TestKilledOnTheWay(t *testing.T) {
	_, h := told(t, Options{Holder: Holder{By: Auto}},
		"A 1 2 SETNX lock:1 a = 1", "! 2 SETNX lock:1 a", "A 3 4 DEL lock:1 = 1", "! 4 DEL lock:1",
		"B 5 9 SETNX lock:1 b = 1", "! 6 SETNX lock:1 b", "C 6 10 SETNX lock:1 c = 0", "K 8",
		"D 20 21 SETNX lock:1 d = 0")
	dead := map[int32]bool{}
	for _, op := range h.Ops {
		if op.Kind == history.Crash {
			dead[op.Worker] = true
		}
	}
	for _, op := range h.Ops {
		late := op.Call >= 20*time.Millisecond
		if op.Kind == history.Acquire && op.Call >= 5*time.Millisecond && dead[op.Worker] == late {
			t.Errorf("%v: its worker is dead: %v", op, dead[op.Worker])
		}
	}
	if err := h.Validate(); err != nil || len(dead) != 2 {
		t.Errorf("%d are dead, 2 were killed: %v", len(dead), err)
	}
}

// TestSharedConnection: if a connection serves several holders, none of them is accused. If the user promises that
// each connection serves one holder, a holder is accused.
func TestSharedConnection(t *testing.T) {
	lines := []string{
		"A 1 2 SET lock:1 a NX PX 10 = OK", "! 3 SET lock:1 a PXAT +11", "A 4 5 SET lock:1 c NX PX 100 = nil",
		"B 20 21 SET lock:1 b NX PX 100 = OK", "! 22 DEL lock:1", "& 22 SET lock:1 b PXAT +120",
		"A 30 31 DEL lock:1 = 1", "! 32 DEL lock:1", "B 40 41 DEL lock:1 = 0"}
	for by, want := range map[By]string{
		Auto: "release b unknown", ByConnection: "release a ok", ByToken: "release b unknown",
	} {
		_, h := told(t, Options{Holder: Holder{By: by}}, lines...)
		if got := heard(h, "a", "b", "c"); !slices.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", by, got, want)
		}
	}
}

// TestDataOfASharedConnection: data access on a shared connection belongs to the only holder that has not released its
// lock. If there are two such holders, it is not judged.
func TestDataOfASharedConnection(t *testing.T) {
	first := []string{"A 1 2 SET lock:1 a NX PX 20 = OK", "! 3 SET lock:1 a PXAT +21",
		"A 4 5 SET lock:1 x NX PX 20 = nil",
		"A 6 7 GET n = 0", "A 8 9 SET n 1 = OK", "! 9 SET n 1"}
	again := []string{"A 50 51 SET lock:1 b NX PX 100 = OK", "! 52 SET lock:1 b PXAT +150", "A 53 54 GET n = 1",
		"A 55 56 SET n 2 = OK", "! 57 SET n 2", "A 58 59 " + unlock + " b = 1", "! 60 DEL lock:1"}
	for name, c := range map[string]struct {
		between []string
		by      By
		uses    int
	}{
		"given back":               {[]string{"A 10 11 " + unlock + " a = 1", "! 12 DEL lock:1"}, Auto, 4},
		"not given back":           {[]string{"! 40 DEL lock:1"}, Auto, 0},
		"not given back, promised": {[]string{"! 40 DEL lock:1"}, ByConnection, 4},
	} {
		r, h := told(t, Options{Data: []string{"n"}, Holder: Holder{By: c.by}},
			slices.Concat(first, c.between, again)...)
		uses := 0
		for _, op := range h.Ops {
			if op.Kind == history.Load || op.Kind == history.Store {
				uses++
			}
		}
		if causes := failed(t, h); uses != c.uses || int(r.DataLoose) != 4-c.uses || len(causes) > 0 {
			t.Errorf("%s: %d uses of data, %d that belong to no visit, %v", name, uses, r.DataLoose, causes)
		}
		if got := heard(h, "a", "b"); !slices.Contains(got, "release b ok") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestData: a late holder loses an update if it stores a value that is based on an older one than another's store. If
// it reads again before its store, it loses none.
func TestData(t *testing.T) {
	for read, want := range map[string]bool{"A 10 11 GET n = 0": true, "A 45 46 GET n = 1": false} {
		wrote := strconv.Itoa(map[bool]int{true: 1, false: 2}[want])
		_, h := told(t, Options{Data: []string{"n"}, Holder: Holder{By: ByConnection}},
			"A 1 2 SET lock:1 a NX PX 20 = OK", "! 3 SET lock:1 a PXAT +21", read,
			"B 30 31 SET lock:1 b NX PX 1000 = OK", "! 32 DEL lock:1", "& 32 SET lock:1 b PXAT +1030",
			"B 33 34 GET n = 0", "B 35 36 SET n 1 = OK", "! 37 SET n 1", "B 40 41 DEL lock:1 = 1", "! 42 DEL lock:1",
			"A 50 51 SET n "+wrote+" = OK", "! 52 SET n "+wrote)
		if got := failed(t, h); slices.Contains(got, "lost-updates: overrun") != want {
			t.Errorf("%s: got %q, lost: %v", read, got, want)
		}
	}
}

// TestBounded: a reader without a history forgets everything that is over.
func TestBounded(t *testing.T) {
	found := 0
	r := NewReader(Options{Locks: []string{"lock:*"}, Epoch: time.UnixMilli(0), Violation: func(Finding) { found++ }})
	r.Event(wire.Event{Kind: wire.TapBegan})
	for i := range 20_000 {
		at, key := time.Duration(i)*time.Millisecond, "lock:"+strconv.Itoa(i)
		r.Effect(&wire.Effect{At: at, Args: []string{"SET", key, "a", "PXAT", strconv.Itoa(i + 1000)}})
		r.Effect(&wire.Effect{At: at + 1, Args: []string{"DEL", key}})
		if i%50 == 0 {
			r.Tick(at)
		}
	}
	r.Tick(time.Minute)
	r.Tick(2 * time.Minute)
	if n := len(r.ledgers) + len(r.books) + len(r.active) + len(r.ops); n > 0 || found > 0 {
		t.Errorf("%d things are kept, %d violations of a right lock", n, found)
	}
}

// TestDataBesideTheLock: data commands without the lock are judged, unless clients share connections. These are reads
// before the grant, writes after the hold, and writes of a client that never had the lock. A read before the grant is
// the base of a write only if numbers prove it.
func TestDataBesideTheLock(t *testing.T) {
	grant := func(c, token string, at int) []string {
		return []string{fmt.Sprintf("%s %d %d SET lock:1 %s NX PX 100 = OK", c, at, at+1, token),
			fmt.Sprintf("! %d SET lock:1 %s PXAT +%d", at+1, token, at+101)}
	}
	release := func(c, token string, at int) []string {
		return []string{fmt.Sprintf("%s %d %d %s %s = 1", c, at, at+1, unlock, token),
			fmt.Sprintf("! %d DEL lock:1", at+1)}
	}
	store := func(c string, at, n int) []string {
		return []string{fmt.Sprintf("%s %d %d SET n %d = OK", c, at, at+1, n), fmt.Sprintf("! %d SET n %d", at+1, n)}
	}
	load := func(c string, at, n int) []string {
		return []string{fmt.Sprintf("%s %d %d GET n = %d", c, at, at+1, n)}
	}
	first := slices.Concat(grant("A", "a", 1), store("A", 3, 5), release("A", "a", 5))
	for name, c := range map[string]struct {
		lines [][]string
		fails bool
	}{
		"read before the lock": {[][]string{load("B", 10, 5), grant("A", "c", 12), load("A", 14, 5), store("A", 16, 6),
			release("A", "c", 18), grant("B", "b", 20), store("B", 22, 6), release("B", "b", 24)}, true},
		"read before the lock, and again": {[][]string{load("B", 10, 5), grant("A", "c", 12), load("A", 14, 5),
			store("A", 16, 6), release("A", "c", 18), grant("B", "b", 20), load("B", 22, 6), store("B", 24, 7),
			release("B", "b", 26)}, false},
		"read for another purpose": {[][]string{load("B", 10, 5), grant("A", "c", 12), load("A", 14, 5),
			store("A", 16, 6), release("A", "c", 18), grant("B", "b", 20), store("B", 22, 900),
			release("B", "b", 24)}, false},
		"written after the release": {[][]string{grant("B", "b", 10), load("B", 12, 5), release("B", "b", 14),
			grant("A", "c", 16), load("A", 18, 5), store("A", 20, 6), release("A", "c", 22), store("B", 24, 6)}, true},
		"without the lock": {[][]string{load("B", 10, 5), grant("A", "c", 12), load("A", 14, 5), store("A", 16, 6),
			release("A", "c", 18), store("B", 20, 6)}, true},
		"a value before all": {[][]string{grant("A", "c", 12), load("A", 14, 5), store("A", 16, 6)}, false},
	} {
		_, h := told(t, Options{Data: []string{"n"}, Holder: Holder{By: Auto}},
			slices.Concat(first, slices.Concat(c.lines...))...)
		got := failed(t, h)
		lost := func(s string) bool { return strings.HasPrefix(s, "lost-updates") }
		if slices.ContainsFunc(got, lost) != c.fails {
			t.Errorf("%s: %q", name, got)
		}
		if err := h.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
