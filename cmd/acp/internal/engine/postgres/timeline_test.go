package postgres

import (
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
)

// TestOldPrimary: once a server was seen that was promoted, the primary before it is not used any more, neither by new
// connections nor by those there are.
func TestOldPrimary(t *testing.T) {
	old, promoted := pgtest.New(t), pgtest.New(t)
	t.Cleanup(old.Remove)
	t.Cleanup(promoted.Remove)
	old.Init(t)
	old.Start(t)
	promoted.Clone(t, old, "host="+old.Dir()+" user=acp")
	promoted.Start(t)
	promoted.Promote(t)

	c := new(connector)
	connect := func(s *pgtest.Server) (*stdlib.Conn, error) {
		t.Helper()
		config, err := pgx.ParseConfig(s.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		c.config = config
		conn, err := c.Connect(t.Context())
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*stdlib.Conn), nil
	}
	first, err := connect(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.reuse(t.Context(), first.Conn()); err != nil {
		t.Error("before:", err)
	}
	second, err := connect(promoted)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.reuse(t.Context(), first.Conn()); !errors.Is(err, driver.ErrBadConn) {
		t.Error("the old one is used again:", err)
	}
	if err := c.reuse(t.Context(), second.Conn()); err != nil {
		t.Error("the new one:", err)
	}
	if _, err := connect(old); !errors.Is(err, errOld) {
		t.Error("a connection to the old one:", err)
	}
}
