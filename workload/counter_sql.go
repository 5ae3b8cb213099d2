package workload

import (
	"context"
	"database/sql"
	"errors"

	"hammerlock/history"
	"hammerlock/locks"
)

// Statements are the SQL statements for one kind of database. Write and WriteIfNewer take the arguments page, views,
// writer and fence; they create the row of a page that has none. WriteIfSame takes the same arguments and then the
// expected writer.
type Statements struct {
	Load         string
	LoadToWrite  string // like Load, and locks the row until the transaction ends
	Make         string // creates the row of a page, with 0 views, if the page has no row
	Write        string
	WriteIfNewer string // changes no row unless the fencing token is greater than the stored one
	WriteIfSame  string
	// Outcome marks an error that proves that nothing was changed. It returns other errors unmodified.
	Outcome func(error) error
}

// sqlCounter stores the counts in a table of a database. It implements Atomic.
type sqlCounter struct {
	db *sql.DB
	do Statements
}

// NewSQLCounter makes a counter in a database, which Close closes. If fenced, stores compare fencing tokens.
func NewSQLCounter(db *sql.DB, do Statements, fenced bool) Counter {
	c := &sqlCounter{db, do}
	if fenced {
		return &fencedSQL{c}
	}
	return c
}

type rowReader interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (s *sqlCounter) Load(ctx context.Context, page string) (Count, error) {
	return selectCount(ctx, s.db, s.do.Load, page)
}

func selectCount(ctx context.Context, db rowReader, query, page string) (c Count, err error) {
	var writer int64
	err = db.QueryRowContext(ctx, query, page).Scan(&c.Views, &writer, &c.Fence)
	if errors.Is(err, sql.ErrNoRows) {
		return Count{}, nil
	}
	c.Writer = history.ID(writer)
	return c, err
}

func (s *sqlCounter) Store(ctx context.Context, page string, c Count) error {
	_, err := s.write(ctx, s.do.Write, c.row(page)...)
	return err
}

// row returns the arguments for Statements.Write.
func (c Count) row(page string) []any { return []any{page, c.Views, int64(c.Writer), c.Fence} }

// write runs one statement as its own transaction and returns the number of changed rows. If the database stayed busy
// for too long, the error is locks.ErrRefused: nothing was changed.
func (s *sqlCounter) write(ctx context.Context, statement string, row ...any) (rows int64, err error) {
	r, err := s.db.ExecContext(ctx, statement, row...)
	if err != nil {
		return 0, s.do.Outcome(err)
	}
	return r.RowsAffected()
}

func (s *sqlCounter) Close() error { return s.db.Close() }

func (s *sqlCounter) Add(ctx context.Context, page string, writer history.ID) (Count, error) {
	return s.change(ctx, page, func(seen Count) (Count, error) {
		return Count{Views: seen.Views + 1, Writer: writer}, nil
	})
}

// change runs a transaction that locks the row of a page, reads it, and writes the count that the function next
// returns. The result seen is the count before the change.
func (s *sqlCounter) change(ctx context.Context, page string, next func(seen Count) (Count, error)) (seen Count,
	err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return seen, s.do.Outcome(err)
	}
	_, err = tx.ExecContext(ctx, s.do.Make, page)
	if err == nil {
		seen, err = selectCount(ctx, tx, s.do.LoadToWrite, page)
	}
	var c Count
	if err == nil {
		c, err = next(seen)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, s.do.Write, c.row(page)...)
	}
	if err != nil {
		return seen, s.do.Outcome(errors.Join(err, tx.Rollback()))
	}
	return seen, tx.Commit()
}

// Transact does not lock the row between load and store. Instead, the store succeeds only if the row's writer is
// still the loaded one.
func (s *sqlCounter) Transact(ctx context.Context, page string, visit func(Count, func(Count) error) error) error {
	seen, err := s.Load(ctx, page)
	if err != nil {
		return err
	}
	return visit(seen, func(c Count) error {
		rows, err := s.write(ctx, s.do.WriteIfSame, append(c.row(page), int64(seen.Writer))...)
		if err == nil && rows == 0 {
			return locks.ErrConflict
		}
		return err
	})
}

type fencedSQL struct{ *sqlCounter }

func (s *fencedSQL) LoadFor(ctx context.Context, page string, fence int64) (Count, error) {
	return s.change(ctx, page, func(seen Count) (Count, error) {
		if fence-1 < seen.Fence {
			return seen, locks.ErrFenced
		}
		seen.Fence = fence - 1
		return seen, nil
	})
}

func (s *fencedSQL) Store(ctx context.Context, page string, c Count) error {
	return accepted(s.write(ctx, s.do.WriteIfNewer, c.row(page)...))
}
