package witness

import (
	"slices"
	"testing"

	"hammerlock/internal/wire"
)

// These are scripts. A reentrant lock has enter, which returns the TTL of another client's lock, and leave. remove
// deletes a lock by its token. permit is the try of a semaphore.
const (
	enter = "EVAL if(redis.call('exists',KEYS[1])==0)then(redis.call('hincrby',KEYS[1],ARGV[2],1));" +
		"redis.call('pexpire',KEYS[1],ARGV[1]);return(nil)end;return(redis.call('pttl',KEYS[1])) 1 lock:1 3000"
	leave = "EVAL if(redis.call('hincrby',KEYS[1],ARGV[2],-1)>0)then;return(0)end;redis.call('del',KEYS[1]);" +
		"return(1) 1 lock:1 3000"
	remove = "EVAL if(redis.call('get',KEYS[1])==ARGV[1])then;return(redis.call('del',KEYS[1]))end;return(0) 1 lock:1"
	permit = "EVAL if(redis.call('zcard',KEYS[1])<ARGV[3])then;redis.call('zadd',KEYS[1],1,ARGV[1]);return(1)end;" +
		"return(0) 1 lock:1"
)

// kinds are locks of less usual kinds, with the operations that must be read.
var kinds = map[string]struct {
	lines []string
	want  []string
}{
	"a record of its owner, by a script": {[]string{
		"A 1 2 EVALSHA aaa 1 lock:1 a host1 3000 = 1", "! 3 HSETNX lock:1 owner a",
		"& 3 HSET lock:1 host host1 since 3000", "& 3 PEXPIREAT lock:1 +3000",
		"B 4 5 EVALSHA aaa 1 lock:1 b host2 3000 = 0", "A 6 7 " + unlock + " a = 1",
		"! 8 DEL lock:1", "B 10 11 EVALSHA aaa 1 lock:1 b host2 3000 = 1", "! 12 HSETNX lock:1 owner b",
		"& 12 HSET lock:1 host host2 since 3000", "& 12 PEXPIREAT lock:1 +3010", "B 20 21 " + unlock + " b = 1",
		"! 22 DEL lock:1"},
		[]string{"acquire a ok", "acquire b failed", "release a ok", "acquire b ok", "release b ok"}},
	"a record with a count": {[]string{
		"A 1 2 EVALSHA aaa 1 lock:1 a = 1", "! 3 HSET lock:1 owner a count 1", "& 3 PEXPIREAT lock:1 +3000",
		"A 4 5 EVALSHA aaa 1 lock:1 a = 1", "! 6 HINCRBY lock:1 count 1", "& 6 PEXPIREAT lock:1 +3004",
		"A 10 11 " + unlock + " a = 1", "! 12 HINCRBY lock:1 count -1", "A 14 15 " + unlock + " a = 1",
		"! 16 HINCRBY lock:1 count -1", "& 16 DEL lock:1"},
		[]string{"acquire a ok", "extend a ok", "release a ok"}},
	"HSETNX of a constant field": {[]string{
		"A 1 2 HSETNX lock:1 owner a = 1", "! 3 HSETNX lock:1 owner a", "B 4 5 HSETNX lock:1 owner b = 0",
		"A 6 7 DEL lock:1 = 1", "! 8 DEL lock:1"},
		[]string{"acquire a ok", "acquire b failed", "release a ok"}},
	"fields that are tokens": {[]string{
		"A 1 2 EVALSHA aaa 1 lock:1 3000 a = nil", "! 3 HINCRBY lock:1 a 1", "& 3 PEXPIREAT lock:1 +3000",
		"B 4 5 EVALSHA aaa 1 lock:1 3000 b = 2998", "A 6 7 " + unlock + " a = 1", "! 8 DEL lock:1"},
		[]string{"acquire a ok", "acquire b failed", "release a ok"}},
	"two unlocks of a re-entrant lock, read late": {[]string{
		"A 1 2 EVALSHA aaa 1 lock:1 3000 a = nil", "! 3 HINCRBY lock:1 a 1", "& 3 PEXPIREAT lock:1 +3000",
		"A 4 5 EVALSHA aaa 1 lock:1 3000 a = nil", "! 6 HINCRBY lock:1 a 1", "& 6 PEXPIREAT lock:1 +3004",
		"A 10 11 " + unlock + " 3000 a = 0", "A 12 13 " + unlock + " 3000 a = 1", "! 20 HINCRBY lock:1 a -1",
		"& 20 PEXPIREAT lock:1 +3010", "! 21 DEL lock:1"},
		[]string{"acquire a ok", "acquire a ok", "release a ok", "release a ok"}},
	"a try that answers the time left, read late": {[]string{
		"A 1 2 " + enter + " a = nil", "A 4 5 " + leave + " a = 1", "B 6 7 " + enter + " b = nil",
		"! 20 HINCRBY lock:1 a 1", "& 20 PEXPIREAT lock:1 +3001", "! 21 HINCRBY lock:1 a -1", "& 21 DEL lock:1",
		"! 22 HINCRBY lock:1 b 1", "& 22 PEXPIREAT lock:1 +3006", "B 30 31 " + leave + " b = 1",
		"! 40 HINCRBY lock:1 b -1", "& 40 DEL lock:1"},
		[]string{"acquire a ok", "release a ok", "acquire b ok", "release b ok"}},
	"releases that all come late": {[]string{
		"A 1 2 SET lock:1 a NX PX 50 = OK", "! 3 SET lock:1 a PXAT +51", "! 55 DEL lock:1",
		"A 60 61 " + remove + " a = 0"},
		[]string{"acquire a ok", "release a failed"}},
	"an end that is over": {[]string{
		"A 1 2 SET lock:1 a NX PX 3000 = OK", "! 3 SET lock:1 a PXAT +3001", "A 6 7 EXPIRE lock:1 0 = 1",
		"! 8 DEL lock:1", "B 10 11 SET lock:1 b NX PX 3000 = OK",
		"! 12 SET lock:1 b PXAT +3010", "B 16 17 PEXPIREAT lock:1 1000 = 1",
		"! 18 DEL lock:1"},
		[]string{"acquire a ok", "release a ok", "acquire b ok", "release b ok"}},
	"several locks at once": {[]string{
		"A 1 2 MSETNX lock:1 a lock:2 a = 1", "! 3 MSETNX lock:1 a lock:2 a", "B 4 5 MSETNX lock:1 b lock:3 b = 0",
		"A 6 7 DEL lock:1 lock:2 = 2", "! 8 DEL lock:1 lock:2"},
		[]string{"acquire a ok", "acquire a' ok", "acquire b failed", "release a ok", "release a' ok"}},
	"the old value asked for": {[]string{
		"A 1 2 SET lock:1 a NX PX 100 GET = nil", "! 3 SET lock:1 a PXAT +101", "B 4 5 SET lock:1 b NX PX 100 GET = a",
		"A 6 7 " + unlock + " a = 1", "! 8 DEL lock:1"},
		[]string{"acquire a ok", "acquire b failed", "release a ok"}},
	"a number": {[]string{
		"A 1 2 INCR lock:1 = 1", "! 3 INCR lock:1", "A 3 4 PEXPIRE lock:1 100 = 1", "! 5 PEXPIREAT lock:1 +103",
		"B 6 7 INCRBY lock:1 1 = 2", "! 8 INCR lock:1", "B 8 9 DECRBY lock:1 1 = 1", "! 10 DECR lock:1",
		"A 12 13 DECR lock:1 = 0", "! 14 DECR lock:1", "B 20 21 INCR lock:1 = 1", "! 22 INCR lock:1",
		"A 24 25 INCR lock:1 = 2", "! 26 INCR lock:1", "A 27 28 DECR lock:1 = 1", "! 28 DECR lock:1",
		"B 30 31 DECR lock:1 = 0", "! 32 DECR lock:1"}, // that it is a lock is not known at first
		[]string{"acquire  ok", "acquire  failed", "release  ok"}},
	"a number that a script makes one": {[]string{
		"A 1 2 EVALSHA aaa 1 lock:1 100 = 1", "! 3 INCR lock:1", "& 3 PEXPIREAT lock:1 +103",
		"A 12 13 DEL lock:1 = 1", "! 14 DEL lock:1"},
		[]string{"acquire  ok", "release  ok"}},
	"a counter of fences, and a number of permits": {[]string{
		"A 1 2 INCR lock:1 = 1", "! 3 INCR lock:1", "B 4 5 INCR lock:1 = 2", "! 6 INCR lock:1", "K 8",
		"C 10 11 INCR lock:1 = 3", "! 12 INCR lock:1", "C 14 15 DECR lock:2 = 2", "! 16 DECR lock:2",
		"C 20 21 INCR lock:2 = 3", "! 22 INCR lock:2"}, nil},
	"a time that is over, swapped": {[]string{
		"A 1 2 SETNX lock:1 +50 = 1", "! 3 SETNX lock:1 +50", "B 60 61 GETSET lock:1 +160 = 1", "! 62 SET lock:1 +160",
		"C 62 63 GETSET lock:1 +162 = 1", "! 64 SET lock:1 +162", "B 70 71 DEL lock:1 = 1", "! 72 DEL lock:1"},
		[]string{"acquire  ok", "release  ok", "acquire  ok", "acquire  failed", "release  ok"}},
}

// TestTimeLeft: a try that answers how long the lock is still another's has been granted if it answers nil.
func TestTimeLeft(t *testing.T) {
	var s script
	s.is("if taken then return redis.call('pttl', KEYS[1]) end")
	for kind, want := range map[wire.Kind]says{wire.Nil: did, wire.Integer: didNot, wire.Unseen: nothing} {
		if got := s.answered(&wire.Request{Reply: wire.Reply{Kind: kind, Int: 1}}, nothing); got != want {
			t.Errorf("a reply of kind %v: got %v, want %v", kind, got, want)
		}
	}
}

// TestADeletionOnItsWay: a DEL that is called before a grant, and executed after it, ends that hold.
func TestADeletionOnItsWay(t *testing.T) {
	_, h := told(t, Options{}, "B 5 30 DEL lock:1 = 1", "A 10 12 SET lock:1 a NX PX 1000 = OK",
		"C 18 31 SET lock:1 c NX PX 1000 = OK", "! 20 SET lock:1 a PXAT +1011", "! 21 DEL lock:1",
		"! 22 SET lock:1 c PXAT +1030", "A 40 41 "+remove+" a = 0", "C 50 51 "+remove+" c = 1", "! 52 DEL lock:1")
	if causes := failed(t, h); !slices.Contains(causes, "exclusion: foreign-release") {
		t.Errorf("got %q", causes)
	}
}

// TestKinds: each of these locks is read correctly, and no right lock is accused.
func TestKinds(t *testing.T) {
	for name, c := range kinds {
		_, h := told(t, Options{Holder: Holder{By: Auto}}, c.lines...)
		if got := heard(h, "a", "b"); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
		if err := h.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if causes := failed(t, h); len(causes) > 0 {
			t.Errorf("%s: %v", name, causes)
		}
	}
}
