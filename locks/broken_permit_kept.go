package locks

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var permitKept = Spec{
	Name:   "permit-kept",
	Doc:    "redisson-permits that does not count what has expired as free",
	Source: "Redisson, RPermitExpirableSemaphore, without the step that gives expired permits back",
	Sites:  OneSite,
	Broken: "the permit of a holder that died stays out for ever, though its lease is over",
	Expect: []Expectation{{Cause: history.Stuck}, {Cause: history.Deadlock}},
	Claims: redissonPermits.Claims,
	Open:   func(e Env) (Lock, error) { return newPermits(e, takeOnly, returnOnly), nil },
}

var (
	takeOnly   = redis.NewScript(permitNow + taking)
	returnOnly = redis.NewScript(permitNow + giveBack)
)
