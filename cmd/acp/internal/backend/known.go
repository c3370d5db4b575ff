package backend

import (
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// connect starts the agent in the way that is known to be right, or finds out which one that is.
// env is added to its environment.
//
// To find out, an agent of version 1 is started twice, and one that must not be lent files once
// more. The result is remembered. If it turns out to be wrong, that costs one start.
func (h *Host) connect(ctx context.Context, env map[string]string) (*link, error) {
	key := remembered.Key(h.cfg.Agent.Key())
	known := remembered.Agent{}
	if !h.cfg.Agent.Builtin {
		known = h.cfg.Memory.Get(key)
	}
	l, err := h.dial(ctx, env, known)
	if err != nil && known.Protocol != 0 && mayBeWrong(ctx, err) {
		h.cfg.Logger.Info("the agent is not as it was; starting it again", "agent", h.name(), "error", err)
		known = remembered.Agent{}
		l, err = h.dial(ctx, env, known)
	}
	if err != nil {
		return nil, err
	}
	if harmedByFiles(l.conn.Agent()) && !h.cfg.Agent.NoFiles && !known.NoFiles {
		h.cfg.Logger.Info("the agent is started again without files, which it cannot use", "agent", h.name())
		now := remembered.Agent{NoFiles: true}
		if l.conn.Version() == 1 {
			now.Protocol = 1
		}
		_ = l.close()
		if l, err = h.dial(ctx, env, now); err != nil {
			return nil, err
		}
	}
	h.learn(key, known, l)
	return l, nil
}

// mayBeWrong reports whether an agent that could not be reached may no longer be as it is
// remembered.
func mayBeWrong(ctx context.Context, err error) bool {
	return ctx.Err() == nil && exitcode.Of(err) != exitcode.Timeout
}

// harmedByFiles reports whether an agent treats a missing file as an error if the files are those
// of its client, so that it cannot create any.
func harmedByFiles(info acp.Implementation) bool { return roster.Introduced(info).Name == "gemini-cli" }

// learn remembers what an agent turned out to be, if that is not known already. An agent that was
// updated is examined again the next time.
func (h *Host) learn(key string, known remembered.Agent, l *link) {
	if h.cfg.Agent.Builtin || h.cfg.Agent.Protocol != 0 {
		return
	}
	info := roster.Introduced(l.conn.Agent())
	now := remembered.Agent{NoFiles: harmedByFiles(info), Name: info.Name, Version: info.Version}
	if l.conn.Version() == 1 {
		now.Protocol = 1
	}
	if err := h.cfg.Memory.Learn(key, known, now); err != nil {
		h.cfg.Logger.Warn("what the agent speaks cannot be remembered", "error", err)
	}
}
