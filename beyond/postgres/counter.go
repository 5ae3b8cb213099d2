package postgres

import (
	"database/sql"

	"github.com/jackc/pgx/v5/stdlib"

	"hammerlock/topologies"
	"hammerlock/workload"
)

const writePage = `INSERT INTO pages VALUES ($1, $2, $3, $4)
	ON CONFLICT (page) DO UPDATE SET views = excluded.views, writer = excluded.writer, fence = excluded.fence`

var statements = workload.Statements{
	Load:         `SELECT views, writer, fence FROM pages WHERE page = $1`,
	LoadToWrite:  `SELECT views, writer, fence FROM pages WHERE page = $1 FOR UPDATE`,
	Make:         `INSERT INTO pages VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING`,
	Write:        writePage,
	WriteIfNewer: writePage + ` WHERE pages.fence < excluded.fence`,
	WriteIfSame:  writePage + ` WHERE pages.writer = $5`,
	Outcome:      outcome,
}

// pool are connections to a site, as a source of those that it is asked by.
func pool(site *topologies.Site, source int) (*sql.DB, error) {
	c, err := siteConfig(site, source)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*c), nil
}

func openCounter(site *topologies.Site) (*sql.DB, error) { return pool(site, 0) }
