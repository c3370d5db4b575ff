package agent

import (
	"context"

	"github.com/goacp/acp"
)

// previewOptions returns the options and commands with which a new session, or a saved one, would begin. The commands do not
// include prompts that people have written: the agent finds those when it opens the session.
func (b *builtin) previewOptions(ctx context.Context, c *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	p := new(acp.OptionsPreview)
	for _, command := range announced(nil) {
		p.AvailableCommands = append(p.AvailableCommands, &command)
	}
	if s, ok := c.Session(q.SessionID); ok {
		p.ConfigOptions = sessionOf(s).options()
		return p, nil
	}
	v := newSession(b, nil)
	v.conn = c
	if st := newState(v); q.SessionID != "" && (b.store.exists(q.SessionID) || !b.store.readBlank(q.SessionID, st.see)) {
		j, err := b.store.open(q.SessionID, st.see)
		if err != nil {
			return nil, err
		}
		_ = j.close() // nothing was added
	}
	v.choose(ctx, false)
	p.ConfigOptions = v.options()
	return p, nil
}
