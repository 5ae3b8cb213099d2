package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"hammerlock/history"
	"hammerlock/locks"
)

var sqliteStore = CounterSpec{
	Name:  "sqlite",
	Doc:   "an SQLite database in a file that worker processes share",
	Place: InFile,
	Open: func(e CounterEnv) (Counter, error) {
		c, err := openSQLite(e.File)
		return c, err
	},
}

var sqliteFenced = CounterSpec{
	Name:   "sqlite-fenced",
	Doc:    "the same, fenced by the condition of its UPDATE: fence < the token of the store",
	Place:  InFile,
	Fenced: true,
	Open: func(e CounterEnv) (Counter, error) {
		c, err := openSQLite(e.File)
		return &sqliteFencedCounter{c}, err
	},
}

// sqliteBusy is how long a statement waits for another process, in milliseconds.
const sqliteBusy = "5000"

// sqliteConnections bounds the connections of a process: one writes at a time, readers do not wait for it.
const sqliteConnections = 4

// The statements. A page's row comes into being with its first store.
const (
	sqliteTable = `CREATE TABLE IF NOT EXISTS pages
		(page TEXT PRIMARY KEY, views INTEGER NOT NULL, writer INTEGER NOT NULL, fence INTEGER NOT NULL) WITHOUT ROWID`
	sqliteLoad  = `SELECT views, writer, fence FROM pages WHERE page = ?`
	sqliteWrite = `INSERT INTO pages (page, views, writer, fence) VALUES (?, ?, ?, ?)
		ON CONFLICT (page) DO UPDATE SET views = excluded.views, writer = excluded.writer, fence = excluded.fence`
	sqliteWriteIfNewer = sqliteWrite + ` WHERE pages.fence < excluded.fence`
	sqliteWriteIfSame  = sqliteWrite + ` WHERE pages.writer = ?`
)

type sqliteCounter struct{ db *sql.DB }

// openSQLite opens the database in the file and makes its table if it is new. Nothing waits for the disk: a process
// that is killed loses nothing that it wrote, and no run outlives the machine.
func openSQLite(file string) (*sqliteCounter, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: url.Values{
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
	return &sqliteCounter{db}, nil
}

type rowReader interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (s *sqliteCounter) Load(ctx context.Context, page string) (Count, error) {
	return selectCount(ctx, s.db, page)
}

func selectCount(ctx context.Context, db rowReader, page string) (c Count, err error) {
	var writer int64
	err = db.QueryRowContext(ctx, sqliteLoad, page).Scan(&c.Views, &writer, &c.Fence)
	if errors.Is(err, sql.ErrNoRows) {
		return Count{}, nil
	}
	c.Writer = history.ID(writer)
	return c, err
}

func (s *sqliteCounter) Store(ctx context.Context, page string, c Count) error {
	_, err := s.write(ctx, sqliteWrite, c.row(page)...)
	return err
}

// row is what a statement is given of a count.
func (c Count) row(page string) []any { return []any{page, c.Views, int64(c.Writer), c.Fence} }

// write is one statement, and so one step. A database that was busy for too long did nothing.
func (s *sqliteCounter) write(ctx context.Context, statement string, row ...any) (rows int64, err error) {
	r, err := s.db.ExecContext(ctx, statement, row...)
	if err != nil {
		return 0, busy(err)
	}
	return r.RowsAffected()
}

// busy tells the error of a statement that never began from others.
func busy(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == codes.SQLITE_BUSY {
		return fmt.Errorf("%w: %w", locks.ErrRefused, err)
	}
	return err
}

func (s *sqliteCounter) Close() error { return s.db.Close() }

// Add is a transaction that takes the write lock before it reads.
func (s *sqliteCounter) Add(ctx context.Context, page string, writer history.ID) (seen Count, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return seen, busy(err)
	}
	if seen, err = selectCount(ctx, tx, page); err == nil {
		_, err = tx.ExecContext(ctx, sqliteWrite, Count{Views: seen.Views + 1, Writer: writer}.row(page)...)
	}
	if err != nil {
		return seen, errors.Join(err, tx.Rollback())
	}
	return seen, tx.Commit()
}

// Transact holds nothing between load and store: the store looks whether the writer is still the one that was seen.
func (s *sqliteCounter) Transact(ctx context.Context, page string, visit func(Count, func(Count) error) error) error {
	seen, err := s.Load(ctx, page)
	if err != nil {
		return err
	}
	return visit(seen, func(c Count) error {
		rows, err := s.write(ctx, sqliteWriteIfSame, append(c.row(page), int64(seen.Writer))...)
		if err == nil && rows == 0 {
			return locks.ErrConflict
		}
		return err
	})
}

type sqliteFencedCounter struct{ *sqliteCounter }

func (s *sqliteFencedCounter) Store(ctx context.Context, page string, c Count) error {
	return accepted(s.write(ctx, sqliteWriteIfNewer, c.row(page)...))
}
