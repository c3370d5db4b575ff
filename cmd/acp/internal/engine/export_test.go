package engine

import (
	"context"
	"errors"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// NewBackend returns what New keeps records with, for somebody who has a lease. It closes the database.
func NewBackend(db Database, l *Lease) journal.Backend {
	return &leased{newBackend(db, Options{}.withDefaults()), l}
}

type leased struct {
	*backend
	l *Lease
}

func (b *leased) Create(ctx context.Context, id string) (journal.Chain, error) {
	return b.backend.Create(withLease(ctx, b.l), id)
}

func (b *leased) Own(ctx context.Context, id string) (journal.Chain, error) {
	return b.backend.Own(withLease(ctx, b.l), id)
}

func (b *leased) Close() error {
	return errors.Join(b.backend.Close(), b.l.Release(context.Background()), b.db.Close())
}

// OnDisk is Files with another disk.
var OnDisk = onDisk

// NewLease takes a lease in a database.
var NewLease = newLease

// Rows reports whether rows are made of records.
func (e *Engine) Rows() bool { return e.files != nil }

// Outdate has the next list look at all journals.
func (e *Engine) Outdate() {
	e.files.scanning.Lock()
	defer e.files.scanning.Unlock()
	e.files.scanned = time.Time{}
}
