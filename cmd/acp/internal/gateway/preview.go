package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// previewTime bounds how long an agent may take that is asked for its options, with what it waits for before.
	previewTime = 30 * time.Second
	// previewKept is how long what an agent has said that was started for it answers the next client that asks the same.
	previewKept = time.Minute
	// maxPreviews bounds these answers, and maxPreview their sizes, in bytes.
	maxPreviews = 64
	maxPreview  = 256 << 10
	// maxOwnPreviews bounds what one client asks at once. An agent is started for one of these at a time.
	maxOwnPreviews = 8
)

// previews is what agents were asked for clients that have no session yet. The zero value is ready for use.
type previews struct {
	mu     sync.Mutex
	asking map[*acp.AgentConn]*ownPreviews
	kept   []keptPreview // the oldest first
}

// ownPreviews are those of one client.
type ownPreviews struct {
	turn chan struct{} // held by the one that is being answered
	all  int
}

// keptPreview is what an agent has said.
type keptPreview struct {
	key  string
	told *acp.OptionsPreview
	at   time.Time
}

// enter waits until a client may have an agent started. leave must be called afterwards.
func (p *previews) enter(ctx context.Context, c *acp.AgentConn) (leave func(), err error) {
	p.mu.Lock()
	own := p.asking[c]
	if own == nil {
		if p.asking == nil {
			p.asking = make(map[*acp.AgentConn]*ownPreviews)
		}
		own = &ownPreviews{turn: make(chan struct{}, 1)}
		p.asking[c] = own
	}
	if own.all >= maxOwnPreviews {
		p.mu.Unlock()
		return nil, &jsonrpc.Failure{Message: fmt.Sprintf("this client waits for %d answers about options, which is the most", maxOwnPreviews), Reason: "busy", RetryAfter: time.Second}
	}
	own.all++
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if own.all--; own.all == 0 {
			delete(p.asking, c)
		}
	}
	select {
	case own.turn <- struct{}{}:
		return func() { <-own.turn; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}

// known returns what an agent has said lately, or nil.
func (p *previews) known(key string) *acp.OptionsPreview {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k keptPreview) bool { return time.Since(k.at) > previewKept })
	for _, k := range p.kept {
		if k.key == key {
			return k.told
		}
	}
	return nil
}

// keep keeps what an agent has said.
func (p *previews) keep(key string, told *acp.OptionsPreview) {
	if data, err := json.Marshal(told); err != nil || len(data) > maxPreview {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k keptPreview) bool { return k.key == key })
	if len(p.kept) == maxPreviews {
		p.kept = slices.Delete(p.kept, 0, 1)
	}
	p.kept = append(p.kept, keptPreview{key, told, time.Now()})
}

// sessionOptions tells what a session would begin with. Of a session that there is, the gateway knows itself what a client
// gets that comes to it. For a new one, an agent is asked: see preview.
func (g *Gateway) sessionOptions(ctx context.Context, c *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	if q.SessionID != "" {
		_, info, err := g.lookUp(ctx, q.SessionID)
		if err != nil {
			return nil, err
		}
		var known attributes
		if err := known.decode(info.Attributes); err != nil {
			return nil, err
		}
		return &acp.OptionsPreview{ConfigOptions: passable(known.options), AvailableCommands: known.commands}, nil
	}
	m, err := metaOf(q.Meta)
	if err != nil {
		return nil, err
	}
	who := g.who(ctx)
	if !who.may(MayPrompt) || who.Session != nil { // an agent runs for it
		return nil, who.errRole("begin sessions")
	}
	name, err := g.agentOf(&who, m.Agent)
	if err != nil {
		return nil, err
	}
	if err := g.allowSession(ctx, &who, name, append([]string{q.Cwd}, q.AdditionalDirectories...), nil); err != nil {
		return nil, err
	}
	if !g.suits(q.Cwd) {
		return nil, &jsonrpc.Failure{Message: "this node takes no sessions in " + q.Cwd + ", so it cannot ask an agent what they begin with", Reason: "no_node"}
	}
	return g.preview(ctx, c, &who, name, q)
}

// preview asks an agent what a new session would begin with: one that runs for the user in that directory, or else one that is
// started for it, in a place that nobody needs, and ends. No session is made in it. What is said of an agent that does not
// answer that is as little as there may be, nothing: what a session has counts once it is open.
func (g *Gateway) preview(ctx context.Context, c *acp.AgentConn, who *Who, agent string, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, previewTime, &jsonrpc.Failure{
		Message: "the agent " + agent + " has not said within " + previewTime.String() + " what a session begins with", Reason: "timeout"})
	defer cancel()
	leave, err := g.tenancy.previews.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	defer leave()
	if conn := g.atWork(who, agent, q.Cwd); conn != nil {
		if told, err := askPreview(ctx, conn, agent, q); err == nil || conn.Conn().Err() == nil {
			return told, err
		}
	}
	key := string(encode([]any{who.User, who.Groups, agent, q.Cwd, q.AdditionalDirectories}))
	if told := g.tenancy.previews.known(key); told != nil {
		return told, nil
	}
	told, err := g.startPreview(ctx, who, agent, q)
	if err == nil {
		g.tenancy.previews.keep(key, told)
	}
	return told, err
}

// atWork returns the connection to an agent that runs for a session that is as the user's new one would be, or nil.
func (g *Gateway) atWork(who *Who, agent, cwd string) *acp.ClientConn {
	g.mu.Lock()
	running := slices.Collect(maps.Keys(g.running))
	g.mu.Unlock()
	for _, b := range running {
		s := b.s
		s.mu.Lock()
		same := s.info.Owner == who.User && slices.Equal(s.known.Groups, who.Groups) && s.info.Agent == agent && s.info.Cwd == cwd
		s.mu.Unlock()
		if same && !b.ends() {
			return b.conn
		}
	}
	return nil
}

// startPreview asks an agent that is started for it.
func (g *Gateway) startPreview(ctx context.Context, who *Who, agent string, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	if err := g.spareAgent(who.User, who.Groups); err != nil {
		return nil, err
	}
	defer g.dismissAgent(who.User)
	tenant := Tenant{User: who.User, Groups: who.Groups, Directories: append([]string{q.Cwd}, q.AdditionalDirectories...)}
	way, err := g.cfg.Start(withTenant(ctx, tenant), agent, q.Cwd)
	var conn *acp.ClientConn
	if err == nil {
		client := &acp.Client{Info: g.cfg.Info, Logger: g.cfg.Logger, Skills: true}
		conn, err = client.Connect(ctx, way)
	}
	if err != nil {
		return nil, g.startFailed(ctx, agent, err, errors.AsType[*process.ExitError])
	}
	defer func() { _ = conn.Close() }()
	return askPreview(ctx, conn, agent, q)
}

// askPreview asks an agent.
func askPreview(ctx context.Context, conn *acp.ClientConn, agent string, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	if caps := conn.Capabilities().Session; caps == nil || caps.Options == nil {
		return &acp.OptionsPreview{}, nil
	}
	p, err := conn.SessionOptions(ctx, acp.OptionsQuery{Cwd: q.Cwd, AdditionalDirectories: q.AdditionalDirectories})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, oneDirectory(agent)
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	told := *p
	told.ConfigOptions = passable(p.ConfigOptions)
	return &told, nil
}
