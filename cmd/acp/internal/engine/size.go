package engine

import (
	"context"
	"errors"
	"fmt"
)

// A Sizer is a [Database] that knows its size.
type Sizer interface {
	// Size returns how many bytes everything takes, on the disk.
	Size(ctx context.Context) (int64, error)
}

// Size returns how many bytes the database takes on the disk. It fails with [errors.ErrUnsupported] if the database
// does not know.
func (e *Engine) Size(ctx context.Context) (int64, error) {
	d, ok := e.db.(Sizer)
	if !ok {
		return 0, fmt.Errorf("the size of the database: %w", errors.ErrUnsupported)
	}
	return d.Size(ctx)
}
