package gateway

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// forkRecord is the first record of a fork: which record of which session it continues.
type forkRecord struct {
	From string `json:"from"`
	At   uint64 `json:"at"`
	Hash string `json:"hash"` // of that record, in hexadecimal; over everything before it
	By   string `json:"by"`
}

// forkState is what is kept of a fork until its agent has opened its session.
type forkState struct {
	From  string  `json:"from"`
	At    uint64  `json:"at"`
	Agent string  `json:"agent,omitempty"` // the agent's session, if it may be asked for a copy of that
	Since *uint64 `json:"since,omitempty"` // attributes.Since of such a copy
	// Cursor is up to where the agent is to copy it; "" means all of it.
	Cursor acpv2.CursorID `json:"cursor,omitempty"`
}

// forkSession begins a session with what was said in another one.
func (g *Gateway) forkSession(ctx context.Context, as *acp.AgentSession, from acp.SessionID) error {
	m, err := metaOf(as.Meta())
	if err != nil {
		return err
	}
	return g.fork(ctx, as, from, "", &m)
}

// forkSessionAt is forkSession up to a cursor of the agent, which alone knows what it remembered there.
func (g *Gateway) forkSessionAt(ctx context.Context, as *acp.AgentSession, from acp.SessionID, at acpv2.CursorID) error {
	m, err := metaOf(as.Meta())
	if err == nil && m.At != nil {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a fork is at a cursor, or at a position that _meta says, not at both")
	}
	if err != nil {
		return err
	}
	return g.fork(ctx, as, from, at, &m)
}

func (g *Gateway) fork(ctx context.Context, as *acp.AgentSession, from acp.SessionID, cursor acpv2.CursorID, m *meta) error {
	_, info, err := g.lookUp(ctx, from)
	if err != nil {
		return err
	}
	who := g.who(ctx) // not what it is in the other session
	if !who.may(MayPrompt) || who.Session != nil {
		return who.errRole("begin sessions")
	}
	known, err := g.asked(ctx, as, &who, info.Agent)
	if err != nil {
		return err
	}
	var source attributes
	if err := source.decode(info.Attributes); err != nil {
		return err
	}
	f := fork{g: g, info: info, by: who.User}
	if m.At != nil {
		f.at = *m.At
	}
	if cursor != "" {
		err = f.measureAt(ctx, cursor, &source)
	} else {
		err = f.measure(ctx, m.At != nil)
	}
	if err != nil {
		return err
	}
	known.Starts = source.Starts // ids of messages in the history begin with the numbers up to this one
	known.Made = source.Made
	known.Fork = &forkState{From: info.ID, At: f.at}
	if f.end && !source.Handover && info.Owner == who.User { // the agent may know more than the client was shown
		known.Fork.Agent = info.AgentSession
		if source.Since != nil && *source.Since == 0 {
			known.Fork.Since = source.Since
		}
		known.Fork.Cursor = cursor
	}
	if m.Lend && g.suits(as.Cwd()) {
		known.Lent = lentBy(as.Conn())
	}
	id := newID(records.GatewayID)
	if _, err = g.cfg.Log.Create(ctx, engine.Session{
		ID: id, Agent: info.Agent, Cwd: as.Cwd(), Owner: who.User, State: records.StateIdle, Parent: info.ID,
		Title: info.Title, Attributes: encode(known),
	}); err != nil {
		return unkeptSession(err)
	}
	last, err := f.copy(ctx, id)
	var p place
	if err == nil {
		p, err = g.begin(ctx, id, as.Cwd())
	}
	if err != nil {
		return errors.Join(err, g.remove(context.WithoutCancel(ctx), id))
	}
	as.SetID(acp.SessionID(id))
	as.SetAnswerMeta(ownmeta.Of(map[string]any{"cursor": last, "forked": f.at}))
	pos, forget := g.position(as)
	return g.lendOn(as, m.Lend, g.join(ctx, p, id, as, last, pos, forget))
}

// asked returns what a client asks for a session that is new, with an agent.
func (g *Gateway) asked(ctx context.Context, as *acp.AgentSession, who *Who, agent string) (known attributes, err error) {
	if !filepath.IsAbs(as.Cwd()) {
		return known, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cwd must be absolute")
	}
	known.Directories, known.Groups = as.AdditionalDirectories(), who.Groups
	if who.may(MayApprove) { // anybody else may not change options
		known.Initial = as.InitialOptions()
	}
	if err := g.allowSession(ctx, who, agent, append([]string{as.Cwd()}, known.Directories...), as.MCPServers()); err != nil {
		return known, err
	}
	for _, server := range as.MCPServers() {
		if _, command := server.(*acpv2.MCPServerStdio); command && !who.may(MayApprove) {
			return known, who.errRole("have the agent start MCP servers")
		}
		raw, err := json.Marshal(server)
		if err != nil {
			return known, err
		}
		known.MCP = append(known.MCP, raw)
	}
	return known, nil
}

// A fork is a copy of a session that is being made.
type fork struct {
	g    *Gateway
	info engine.Session // the source
	by   string
	at   uint64 // the last record that is copied
	hash string // its hash
	end  bool   // no turn of the source follows it, or the agent is to copy its session up to a cursor
	open string // the prompt of the turn that is copied in part, or ""
}

// measure finds the last record that is copied. A turn is copied as a whole or not at all: of an unfinished one nothing
// is, nor of one that was unfinished at the position the client gives. What is damaged is left out.
func (f *fork) measure(ctx context.Context, given bool) error {
	var last, prompt uint64
	want, running := f.at, false
	f.at = 0
	err := f.g.cfg.Log.Read(ctx, f.info.ID, 0, func(r engine.Record) error {
		last = r.Seq
		switch r.Kind {
		case kindPrompt:
			running, prompt = true, r.Seq
		case kindEnd:
			running = false
		}
		if !running && (!given || r.Seq <= want) {
			f.at, f.hash = r.Seq, hex.EncodeToString(r.Hash[:])
		}
		return nil
	})
	f.end = prompt <= f.at
	if errors.As(err, new(*engine.DamageError)) { // the agent may know more, or other things
		f.end, err = false, nil
	}
	if err == nil && given && want > last {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the position %d is after the end, which is %d", want, last)
	}
	return err
}

// copy writes the history of the new session, and returns its last record.
func (f *fork) copy(ctx context.Context, id string) (last uint64, err error) {
	own, err := f.g.cfg.Log.Claim(ctx, id, f.g.Lease())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.g.release(own)) }()
	batch := []engine.Record{{Kind: kindFork, Data: encode(forkRecord{f.info.ID, f.at, f.hash, f.by})}}
	size := 0
	flush := func() error {
		kept, err := own.Append(ctx, batch...)
		if err == nil {
			last = kept[len(kept)-1].Seq
			batch, size = nil, 0
		}
		return err
	}
	errEnough := errors.New("that is all")
	err = f.g.cfg.Log.Fold(ctx, f.info.ID, 0, func(r engine.Record) error {
		if r.Seq > f.at {
			return errEnough
		}
		data, err := forked(r, f.info.ID, id)
		if err != nil || data == nil {
			return err
		}
		if len(batch) == engine.MaxRecords || size+len(data) > maxUnwritten && len(batch) > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		batch = append(batch, engine.Record{Kind: r.Kind, Data: data, At: r.At})
		size += len(data)
		return nil
	})
	err = ignoring(err, errEnough)
	if err == nil && f.open != "" {
		batch = append(batch, engine.Record{Kind: kindEnd, Data: encode(records.End{Prompt: f.open, Stop: acp.StopEndTurn})})
	}
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	return last, err
}

// forked returns the data of a record in a fork; nil if it has none there. What was asked, and what was sent to the
// agent of the source, belongs to that; the name of an operation does, too.
func forked(r engine.Record, from, to string) ([]byte, error) {
	switch r.Kind {
	case kindPrompt:
		p, err := records.DecodePrompt(r.Data)
		if err != nil {
			return nil, err
		}
		p.Operation = ""
		return p.Encode()
	case kindUpdate, kindChild:
		var u records.Update
		if err := json.Unmarshal(r.Data, &u); err != nil {
			return nil, err
		}
		if said, err := records.DecodeUpdate(r.Data); err == nil {
			if _, ok := said.(*acpv2.CursorUpdate); ok {
				return nil, nil // it is one of the source
			}
		}
		u, err := adopted(u, from, to)
		if err != nil {
			return nil, err
		}
		return u.Encode(), nil
	case kindEnd:
		end, err := records.DecodeEnd(r.Data)
		if err != nil {
			return nil, err
		}
		end.Stamp = records.Stamp{}
		return encode(end), nil
	case kindNotice, kindOutput:
		return r.Data, nil
	}
	return nil, nil
}

// fork opens the session of a fork in the agent: as the agent's own copy of its session, or else as a new one that gets
// what was said as text.
func (b *backend) fork(ctx context.Context, cfg acp.SessionConfig, f *forkState) error {
	s, err := b.copied(ctx, cfg, f)
	since := f.Since
	title := "This session was forked from " + f.From + "."
	description := "The agent has a copy of what it remembers."
	if s == nil && err == nil {
		since = new(uint64)
		b.transcript, *since, err = b.s.transcript(ctx)
		if err == nil {
			s, err = b.conn.NewSession(ctx, cfg)
		}
		description = "The agent gets what was said so far as text, with the next prompt, and nothing of what it had seen otherwise."
	}
	if err != nil {
		return err
	}
	b.session = s
	if err := b.opened(ctx, since); err != nil {
		return err
	}
	return b.s.notice(ctx, acp.NoticeSeverityInfo, title, description)
}

// copied has the agent copy its session, and returns the copy; nil if it cannot, or if the session has more by then than
// the fork.
func (b *backend) copied(ctx context.Context, cfg acp.SessionConfig, f *forkState) (*acp.ClientSession, error) {
	if f.Agent == "" {
		return nil, nil
	}
	s, err := b.conn.ForkAt(ctx, acp.SessionID(f.Agent), f.Cursor, cfg)
	if err == nil && f.Cursor != "" {
		return s, nil
	}
	if err != nil {
		switch {
		case ctx.Err() != nil || b.conn.Conn().Err() != nil:
			return nil, err
		case errors.Is(err, errors.ErrUnsupported) && f.Cursor != "":
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cursorId: the agent cannot fork sessions")
		case f.Cursor != "": // another process of it may not know the session, and the code would say so of ours
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cursorId: the agent has not forked its session there: %s", reasonOf(err))
		}
		b.s.logger().Info("gateway: the agent cannot fork its session", "error", err)
		return nil, nil
	}
	errMore := errors.New("there is more")
	err = b.s.g.cfg.Log.Fold(ctx, f.From, f.At, func(r engine.Record) error {
		if r.Kind == kindPrompt { // the agent gets a prompt after it was committed
			return errMore
		}
		return nil
	})
	if err == nil {
		return s, nil
	}
	if err := s.Close(ctx); err != nil {
		b.s.logger().Info("gateway: a copy of a session in the agent stays open", "error", err)
	}
	return nil, nil
}
