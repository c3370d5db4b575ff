package exec

import (
	"cmp"
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// sessionAt returns the session of a gateway to continue, or "" for a new one.
func (o *Options) sessionAt(ctx context.Context, c *acp.ClientConn) (acp.SessionID, error) {
	if o.Session == "" && !o.Continue {
		return "", nil
	}
	s, err := at.Find(ctx, c, cmp.Or(o.At, app.Own), cmp.Or(o.Session, "-"), o.App.Cwd)
	if exitcode.Of(err) == exitcode.Usage && o.OrNew {
		return "", nil
	}
	return s.ID, err
}
