package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

var (
	// errNoCancel is the error of an attempt of the driver to cancel a statement.
	errNoCancel = errors.New("statements are not cancelled")
	// errDoubt reports that the server has not waited for a standby.
	errDoubt = errors.New("the server gave up waiting for a standby: the outcome is in doubt")
)

// doubtKey is where a connection's custom data has its *atomic.Bool: whether a commit is in doubt.
const doubtKey = "acp doubt"

// A connector opens connections that never cancel a statement.
//
// When a context ends, the driver closes the connection and asks the server, over another one, to
// cancel what it does. A commit that waits for a standby would end its wait, stay committed on the
// primary alone, and be shown to everybody. So the request is not let out: the server carries on, and
// the outcome is asked for later.
type connector struct{ config *pgx.ConnConfig }

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	config := c.config.Copy()
	dial := config.DialFunc
	var connected atomic.Bool
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, addr)
	}
	doubt := new(atomic.Bool)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		// "canceling wait for synchronous replication" has the code of any warning. Nothing else that
		// is done here warns of anything, so each of them counts.
		if n.SeverityUnlocalized == "WARNING" {
			doubt.Store(true)
		}
	}
	conn, err := stdlib.GetConnector(*config, stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[doubtKey] = doubt
		doubt.Store(false)
		return nil
	})).Connect(ctx)
	connected.Store(true)
	return conn, err
}

// Driver implements [driver.Connector].
func (c *connector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// pool returns a pool of up to n connections.
func (c *connector) pool(n int) *sql.DB {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// settled returns errDoubt if the server has warned of something on a connection since the last call.
func settled(conn *sql.Conn) error {
	err := errDoubt // if the connection is gone, nothing is known
	conn.Raw(func(c any) error {
		if own, ok := c.(*stdlib.Conn); ok {
			if doubt, ok := own.Conn().PgConn().CustomData()[doubtKey].(*atomic.Bool); ok && !doubt.Swap(false) {
				err = nil
			}
		}
		return nil
	})
	return err
}
