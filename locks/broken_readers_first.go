package locks

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var readersFirst = Spec{
	Name:   "readers-first",
	Doc:    "read-write that grants the lock to every reader who comes while there are readers",
	Source: "Courtois, Heymans, Parnas (1971): the first problem, of which they say that writers may starve",
	Sites:  OneSite,
	Broken: "while readers come and go, and one is always there, a writer waits for ever",
	Expect: []Expectation{{Cause: history.Starved, Scenario: "steady-readers"}},
	Claims: readWrite.Claims,
	Open:   func(e Env) (Lock, error) { return newReadWrite(e, readFirst), nil },
}

var readFirst = redis.NewScript(serverNow + `
if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end` + addReader)
