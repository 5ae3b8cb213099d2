package postgres

import (
	"context"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

var autocommit = server.ByRow(locks.Spec{
	Name:   "autocommit",
	Doc:    "SELECT .. FOR UPDATE NOWAIT without a transaction",
	Source: "FOR UPDATE in a repository method that is not marked as transactional",
	Broken: "the statement is a transaction of its own: the row is free again when the answer arrives",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "contention"},
		{Cause: history.ForeignRelease, Scenario: "contention"}},
	Claims: history.Claims{Excludes: true},
}, `SELECT 1 FROM rows WHERE name = $1 AND $2 <> ''`,
	func(_ locks.Env, s *database.Session) func(context.Context, locks.Lease) error {
		return func(ctx context.Context, h locks.Lease) error {
			if err := s.Own(ctx, makeRow, h.Key); err != nil && err != locks.ErrLost {
				return err
			}
			return s.Own(ctx, rowForUpdate+` NOWAIT`, h.Key)
		}
	})
