package mysql

import (
	"database/sql"

	"hammerlock/topologies"
	"hammerlock/workload"
)

// The statements. Assignments are made from left to right: the column that is compared comes last. A row that stays as it was
// does not count as affected.
const writePage = `INSERT INTO pages VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE `

var statements = workload.Statements{
	Load:        `SELECT views, writer, fence FROM pages WHERE page = ?`,
	LoadToWrite: `SELECT views, writer, fence FROM pages WHERE page = ? FOR UPDATE`,
	Make:        `INSERT IGNORE INTO pages VALUES (?, 0, 0, 0)`,
	Write:       writePage + `views = VALUES(views), writer = VALUES(writer), fence = VALUES(fence)`,
	WriteIfNewer: writePage + `views = IF(fence < VALUES(fence), VALUES(views), views), writer = IF(fence < VALUES(fence), VALUES(writer), writer),
		fence = GREATEST(fence, VALUES(fence))`,
	WriteIfSame: writePage + `views = IF(@same := (writer = ?), VALUES(views), views), fence = IF(@same, VALUES(fence), fence),
		writer = IF(@same, VALUES(writer), writer)`,
	Outcome: outcome,
}

func openCounter(site *topologies.Site) (*sql.DB, error) { return connect(siteConfig(site, 0)) }
