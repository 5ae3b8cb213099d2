package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"hammerlock/beyond/database"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// config returns the settings of a connection to an address. The client puts arguments into the statement itself,
// so a statement is one round trip.
func config(addr, password string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.Timeout, c.InterpolateParams = owner, password, "tcp", addr, schema,
		database.ConnectTimeout, true
	c.Logger = silent{}
	return c
}

// silent drops the library's log lines, because its errors say the same.
type silent struct{}

func (silent) Print(...any) {}

func open(c *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func pool(site *topologies.Site, source int) (*sql.DB, error) { return open(siteConfig(site, source)) }

func asker(n *topologies.Node) (*sql.DB, error) { return open(config(n.Back(), n.Password())) }

// siteConfig returns the settings of connections through the source's links, like those of the suite's Redis clients.
func siteConfig(site *topologies.Site, source int) *mysql.Config {
	c := config(site.Addrs()[0], site.Password())
	c.DialFunc = site.Dialer(source)
	return c
}

// conn is a worker's own connection, the only one of its pool.
type conn struct {
	*sql.Conn
	pool *sql.DB
}

func connector(site *topologies.Site, source int) (func(context.Context) (database.Conn, error), error) {
	c, err := mysql.NewConnector(siteConfig(site, source))
	return func(ctx context.Context) (database.Conn, error) {
		pool := sql.OpenDB(c)
		one, err := pool.Conn(ctx)
		if err != nil {
			return nil, errors.Join(err, pool.Close())
		}
		return &conn{one, pool}, nil
	}, err
}

func (c *conn) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	r, err := c.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (c *conn) QueryRow(ctx context.Context, query string, args ...any) database.Row {
	return c.QueryRowContext(ctx, query, args...)
}

// Alive asks the library whether the connection can still be used.
func (c *conn) Alive() bool {
	return c.Raw(func(c any) error {
		if v, ok := c.(driver.Validator); ok && !v.IsValid() {
			return driver.ErrBadConn
		}
		return nil
	}) == nil
}

func (c *conn) Break() error {
	_ = c.Raw(func(any) error { return driver.ErrBadConn }) // this error makes the library close the connection
	_ = c.Close()
	return c.pool.Close()
}

// Numbers of server errors after which a statement certainly had no effect.
const (
	duplicate       = 1062
	lockWaitTimeout = 1205
	deadlock        = 1213
	interrupted     = 1317
)

// outcome marks a statement's error if the statement certainly had no effect: it was not sent, or the server answered
// that it did nothing.
func outcome(err error) error {
	if err == nil || errors.Is(err, topologies.ErrUnreachable) {
		return err
	}
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("%w: %w", topologies.ErrUnreachable, err) // the library sent nothing
	}
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch answer.Number {
		case duplicate, lockWaitTimeout:
			return fmt.Errorf("%w: %w", locks.ErrBusy, err)
		case deadlock, interrupted:
			return fmt.Errorf("%w: %w", locks.ErrRefused, err)
		}
	}
	return err
}
