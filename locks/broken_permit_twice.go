package locks

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var permitTwice = Spec{
	Name:   "permit-twice",
	Doc:    "redisson-permits that counts a permit that is returned without a look whether it is still out",
	Source: "Redisson, RPermitExpirableSemaphore, without the look whether the permit is still out",
	Sites:  OneSite,
	Broken: "a permit whose lease was over comes back twice, by its expiry and from its late holder: there is one too many from then on",
	Expect: []Expectation{{Cause: history.ForeignRelease}, {Cause: history.DoubleGrant}},
	Claims: redissonPermits.Claims,
	Open:   func(e Env) (Lock, error) { return newPermits(e, permitTake, returnAnyway), nil },
}

var returnAnyway = redis.NewScript(permitNow + reclaim + `
for i = 1, asked do redis.call("ZREM", KEYS[2], ARGV[1] .. ":" .. i) end
redis.call("INCRBY", KEYS[1], asked)
redis.call("PUBLISH", KEYS[3], asked)
return 1`)
