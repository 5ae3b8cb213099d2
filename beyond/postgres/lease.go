package postgres

import (
	"context"
	"time"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

// clock_timestamp is read when the transaction has the row; now() would be the start of the transaction. An UPDATE
// does not lock the row while another holder's lease is valid. INSERT .. ON CONFLICT .. WHERE does lock it: with 16
// waiters, releases had to wait until the lease was over. It also computes the expiry before it waits for the row.
var leases = database.Leases{
	Make: `INSERT INTO leases VALUES ($1, '', '-infinity', 0) ON CONFLICT DO NOTHING`,
	Take: func(ctx context.Context, on database.Conn, h locks.Lease, ttl time.Duration) (fence int64, err error) {
		err = on.QueryRow(ctx,
			`UPDATE leases
			SET token = $2, expires = clock_timestamp() + $3 * interval '1 microsecond', fence = fence + 1
			WHERE name = $1 AND expires <= clock_timestamp() RETURNING fence`,
			h.Key, h.Token, ttl.Microseconds()).Scan(&fence)
		return fence, err
	},
	Extend: `UPDATE leases SET expires = clock_timestamp() + $1 * interval '1 microsecond'
		WHERE name = $2 AND token = $3 AND expires > clock_timestamp()`,
	Release: freeLease + ` AND token = $2`,
}

const freeLease = `UPDATE leases SET token = '', expires = '-infinity' WHERE name = $1 AND expires > clock_timestamp()`

var leaseByName = locks.Spec{
	Name:   "pg-lease-by-name",
	Doc:    "pg-lease, but a release frees the row of any holder",
	Source: "the UPDATE .. SET expires = NULL WHERE name of many lock tables",
	Sites:  locks.OneSite,
	Engine: server.Engine,
	Broken: "a holder that is late frees the lock of the next one",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease, Scenario: "late-holder"}},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true},
	Open: server.Leased(database.Leases{
		Make: leases.Make, Take: leases.Take, Extend: leases.Extend, Release: freeLease + ` AND $2 <> ''`,
	}),
}
