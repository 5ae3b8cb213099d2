package workload

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"hammerlock/locks"
)

var sqliteStore = CounterSpec{
	Name:  "sqlite",
	Doc:   "an SQLite database in a file that worker processes share",
	Place: InFile,
	Open:  func(e CounterEnv) (Counter, error) { return openSQLite(e.File, false) },
}

var sqliteFenced = CounterSpec{
	Name:   "sqlite-fenced",
	Doc:    "the same, fenced by the condition of its UPDATE: fence < the token of the store",
	Place:  InFile,
	Fenced: true,
	Open:   func(e CounterEnv) (Counter, error) { return openSQLite(e.File, true) },
}

// sqliteDriver is the name that modernc.org/sqlite registers. The suite's commands import that package; a program
// that only imports hammertest does not need it.
const sqliteDriver = "sqlite"

// sqliteBusy is the time for which a statement waits for other processes, in milliseconds.
const sqliteBusy = "5000"

// sqliteConnections is the number of connections of each process. SQLite allows one writer at a time; readers do
// not wait for the writer.
const sqliteConnections = 4

const (
	sqliteTable = `CREATE TABLE IF NOT EXISTS pages
		(page TEXT PRIMARY KEY, views INTEGER NOT NULL, writer INTEGER NOT NULL, fence INTEGER NOT NULL) WITHOUT ROWID`
	sqliteWrite = `INSERT INTO pages (page, views, writer, fence) VALUES (?, ?, ?, ?)
		ON CONFLICT (page) DO UPDATE SET views = excluded.views, writer = excluded.writer, fence = excluded.fence`
)

var sqliteStatements = Statements{
	Load: `SELECT views, writer, fence FROM pages WHERE page = ?`,
	// SQLite locks the whole file when the transaction begins, so the row needs no lock
	LoadToWrite:  `SELECT views, writer, fence FROM pages WHERE page = ?`,
	Make:         `INSERT OR IGNORE INTO pages VALUES (?, 0, 0, 0)`,
	Write:        sqliteWrite,
	WriteIfNewer: sqliteWrite + ` WHERE pages.fence < excluded.fence`,
	WriteIfSame:  sqliteWrite + ` WHERE pages.writer = ?`,
	Outcome:      busy,
}

// openSQLite opens the database file and creates its table. Writes do not wait for the disk. If the process is
// killed, the operating system still has them; if the machine crashes, the run is over anyway.
func openSQLite(file string, fenced bool) (Counter, error) {
	db, err := sql.Open(sqliteDriver, (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(),
		RawQuery: url.Values{
			"_txlock": {"immediate"}, "_busy_timeout": {sqliteBusy}, "_journal_mode": {"WAL"}, "_synchronous": {"OFF"},
		}.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open the counter in %s: %w", file, err)
	}
	db.SetMaxOpenConns(sqliteConnections)
	db.SetMaxIdleConns(sqliteConnections)
	if _, err := db.Exec(sqliteTable); err != nil {
		return nil, errors.Join(fmt.Errorf("make the counter in %s: %w", file, err), db.Close())
	}
	return NewSQLCounter(db, sqliteStatements, fenced), nil
}

const sqliteIsBusy = 5

// busy marks the error SQLITE_BUSY with locks.ErrRefused, because nothing was changed.
func busy(err error) error {
	var e interface{ Code() int }
	if errors.As(err, &e) && e.Code()&0xff == sqliteIsBusy {
		return fmt.Errorf("%w: %w", locks.ErrRefused, err)
	}
	return err
}
