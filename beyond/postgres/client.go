package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"hammerlock/beyond/database"
	"hammerlock/locks"
	"hammerlock/topologies"
)

func config(addr, password string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig((&url.URL{Scheme: "postgres", User: url.UserPassword(owner, password), Host: addr,
		Path: "/postgres", RawQuery: "sslmode=disable"}).String())
	if err != nil {
		return nil, err
	}
	c.ConnectTimeout = database.ConnectTimeout
	return c, nil
}

// siteConfig returns the settings of connections through the source's links, like those of the suite's Redis clients.
func siteConfig(site *topologies.Site, source int) (*pgx.ConnConfig, error) {
	c, err := config(site.Addrs()[0], site.Password())
	if err != nil {
		return nil, err
	}
	c.DialFunc = site.Dialer(source)
	return c, nil
}

func pool(site *topologies.Site, source int) (*sql.DB, error) {
	c, err := siteConfig(site, source)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*c), nil
}

// asker opens the suite's own connections, which bypass all links.
func asker(n *topologies.Node) (*sql.DB, error) {
	c, err := config(n.Back(), n.Password())
	if err != nil {
		return nil, err
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // allows several statements in one request
	return stdlib.OpenDB(*c), nil
}

type conn struct {
	*pgx.Conn
	broken bool
}

func connector(site *topologies.Site, source int) (func(context.Context) (database.Conn, error), error) {
	c, err := siteConfig(site, source)
	return func(ctx context.Context) (database.Conn, error) {
		one, err := pgx.ConnectConfig(ctx, c)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: one}, nil
	}, err
}

func (c *conn) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	done, err := c.Conn.Exec(ctx, statement, args...)
	return done.RowsAffected(), err
}

func (c *conn) QueryRow(ctx context.Context, query string, args ...any) database.Row {
	return c.Conn.QueryRow(ctx, query, args...)
}

func (c *conn) Alive() bool { return !c.broken && !c.IsClosed() }

// Break closes the connection without telling the server.
func (c *conn) Break() error {
	if !c.Alive() {
		return nil
	}
	c.broken = true
	return c.PgConn().Conn().Close()
}

// Codes of server errors after which a statement certainly had no effect.
const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
	cannotConnectNow = "57P03"
	deadlockDetected = "40P01"
	serialization    = "40001"
	uniqueViolation  = "23505"
)

// outcome marks a statement's error if the statement certainly had no effect: it was not sent, or the server answered
// that it did nothing.
func outcome(err error) error {
	if err == nil || errors.Is(err, topologies.ErrUnreachable) {
		return err
	}
	if pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch answer.Code {
		case lockNotAvailable, uniqueViolation:
			return fmt.Errorf("%w: %w", locks.ErrBusy, err)
		case queryCanceled, cannotConnectNow, deadlockDetected, serialization:
			return fmt.Errorf("%w: %w", locks.ErrRefused, err)
		}
	}
	return err
}
