package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

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
type connector struct {
	config *pgx.ConnConfig
	newest atomic.Int64 // the newest timeline of a server, see checkTimeline
}

// errOld is why a connection is not used.
var errOld = errors.New("the server was the primary before another one")

// timelineKey is where a connection's custom data has the timeline of its server.
const timelineKey = "acp timeline"

// checkTimeline refuses a server that was the primary before another one that was seen. A server that was paused or
// cut off while another one was promoted does not know that, and has what was read and written before. The timeline of a
// cluster is counted up by each promotion. Databases that have none are not refused.
func (c *connector) checkTimeline(ctx context.Context, conn *pgconn.PgConn) error {
	res := conn.ExecParams(ctx, `SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint::text`, nil, nil, nil, nil).Read()
	if res.Err != nil || len(res.Rows) != 1 {
		if _, ok := errors.AsType[*pgconn.PgError](res.Err); ok {
			return nil // it has no such function
		}
		return res.Err
	}
	timeline, err := strconv.ParseInt(string(res.Rows[0][0]), 10, 64)
	if err != nil {
		return err
	}
	conn.CustomData()[timelineKey] = timeline
	for {
		newest := c.newest.Load()
		if timeline < newest {
			return errOld
		}
		if c.newest.CompareAndSwap(newest, timeline) {
			return nil
		}
	}
}

// reuse refuses a connection of the pool to a server that was the primary before another one.
func (c *connector) reuse(_ context.Context, conn *pgx.Conn) error {
	if timeline, ok := conn.PgConn().CustomData()[timelineKey].(int64); ok && timeline < c.newest.Load() {
		return driver.ErrBadConn
	}
	return nil
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	config := c.config.Copy()
	dial := config.DialFunc
	var connected atomic.Bool
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &patient{Conn: conn}, nil
	}
	valid := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := valid(ctx, conn); err != nil {
			return err
		}
		return c.checkTimeline(ctx, conn)
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
	}), stdlib.OptionResetSession(c.reuse)).Connect(ctx)
	connected.Store(true)
	return conn, err
}

// silence is how long a server may take to send something that is waited for: a server that is paused, or cut off,
// closes no connection. Commits have a time-out of their own, and no statement waits for a lock for as long.
const silence = 10 * time.Second

// A patient connection does not wait for longer than silence.
type patient struct {
	net.Conn

	mu    sync.Mutex
	limit time.Time // what the driver has set
}

// Read implements [net.Conn].
func (p *patient) Read(b []byte) (int, error) {
	p.mu.Lock()
	limit := time.Now().Add(silence)
	if !p.limit.IsZero() && p.limit.Before(limit) {
		limit = p.limit
	}
	err := p.Conn.SetReadDeadline(limit)
	p.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// SetReadDeadline implements [net.Conn].
func (p *patient) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = t
	return p.Conn.SetReadDeadline(t)
}

// SetDeadline implements [net.Conn].
func (p *patient) SetDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = t
	return p.Conn.SetDeadline(t)
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
