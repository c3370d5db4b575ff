package store

import (
	"context"
	"errors"
)

func rebuild(ctx context.Context, path string, reason error) (*Damage, error) {
	return nil, errors.ErrUnsupported
}
