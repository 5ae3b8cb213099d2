package locks

import (
	"github.com/go-redsync/redsync/v4"

	"hammerlock/history"
)

var libRedsyncSetNX = Spec{
	Name:   "redsync-setnx-extend",
	Doc:    "redsync whose extension sets the key where it is gone (WithSetNXOnExtend)",
	Source: "github.com/go-redsync/redsync/v4 v4.18.1; docs/FINDINGS.md",
	Sites:  ManySites,
	Broken: "a hold that is over comes back to life: another worker may have had the lock meanwhile, and no holder hears of it",
	Expect: []Expectation{{Cause: history.SilentReacquire}},
	Claims: libRedsync.Claims,
	Open:   func(e Env) (Lock, error) { return newRedsync(e, redsync.WithSetNXOnExtend()), nil },
}
