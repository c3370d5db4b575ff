package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// Export writes a session as a recording of version 2 of the protocol, as its only client would have seen it: its
// prompts, everything that was said, with the times of the log, and the ends of its turns. What was asked, and what
// the answer was, are notices, unless that stands on a tool call. What is damaged is left out: then Export fails in the
// end.
func Export(ctx context.Context, log *engine.Engine, id string, tool string, w io.Writer) error {
	info, err := log.Session(ctx, id)
	if err != nil {
		return err
	}
	x := &export{id: info.ID, cwd: info.Cwd, at: info.Created, read: func(yield func(engine.Record) error) error {
		return log.Read(ctx, id, 0, yield)
	}}
	return x.write(ctx, tool, w)
}

// write has the session happen again between an agent and its client, and writes what they say.
func (x *export) write(ctx context.Context, tool string, w io.Writer) (err error) {
	x.next = make(chan engine.Record)
	if x.w, err = trace.NewWriter(w, trace.Header{Started: x.at, Tool: tool}); err != nil {
		return err
	}
	ours, theirs := jsonrpc.Pipe()
	agent := &acp.Agent{Info: acp.Implementation{Name: "acp"}, Prompt: x.prompt, NewSession: func(_ context.Context, as *acp.AgentSession) error {
		as.SetID(acp.SessionID(x.id))
		return nil
	}, MinVersion: 2}
	served, err := agent.Connect(context.WithoutCancel(ctx), acp.Over(theirs))
	if err != nil {
		return err
	}
	client := &acp.Client{Info: acp.Implementation{Name: "acp"}, MinVersion: 2}
	conn, err := client.Connect(ctx, acp.Over(jsonrpc.Tap(ours, x.frame)))
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
		_ = served.Close()
		if e := x.finish(); err == nil {
			err = e
		}
	}()
	if err != nil {
		return err
	}
	s, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: x.cwd})
	if err != nil {
		return err
	}
	as, ok := served.Session(s.ID())
	if !ok {
		return errors.New("export: there is no session")
	}
	return x.run(ctx, s, as)
}

// An export is one that is being made.
type export struct {
	id, cwd string
	read    func(yield func(engine.Record) error) error // the log
	next    chan engine.Record                          // to the turn that runs

	mu  sync.Mutex
	w   *trace.Writer
	at  time.Time // of the record that is being sent
	beg time.Time
	err error
}

// frame writes a frame.
func (x *export) frame(sent bool, frame []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.beg.IsZero() {
		x.beg = x.at
	}
	dir := trace.ToClient
	if sent {
		dir = trace.ToAgent
	}
	if x.err == nil {
		x.err = x.w.Write(&trace.Record{At: max(0, x.at.Sub(x.beg)), Kind: trace.Frame, Dir: dir, Data: frame})
	}
	if x.err == nil && x.w.Pending() > 1<<20 {
		x.err = x.w.Flush()
	}
}

func (x *export) finish() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Join(x.err, x.w.Flush())
}

// run has each turn run again.
func (x *export) run(ctx context.Context, s *acp.ClientSession, as *acp.AgentSession) error {
	var reply *acp.Reply // of the turn that runs
	end := func() error {
		if reply == nil {
			return nil
		}
		_, err := reply.Wait()
		reply = nil
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if said := (*jsonrpc.Error)(nil); errors.As(err, &said) { // that is how it ended
			return nil
		}
		return err
	}
	err := x.read(func(r engine.Record) error {
		x.mu.Lock()
		x.at = r.At
		err := x.err
		x.mu.Unlock()
		if err != nil {
			return err
		}
		if r.Kind == kindPrompt {
			p, err := records.DecodePrompt(r.Data)
			if err == nil {
				err = x.give(ctx, reply, engine.Record{Kind: kindEnd, Data: encode(records.End{Stop: acp.StopCancelled})})
			}
			if err == nil {
				err = end()
			}
			if err == nil {
				reply = s.Prompt(ctx, p.Content...)
			}
			return err
		}
		if reply == nil {
			return x.send(as, r)
		}
		if err := x.give(ctx, reply, r); err != nil || r.Kind != kindEnd {
			return err
		}
		return end()
	})
	if reply != nil { // it runs still, or the rest is damaged
		err = errors.Join(err, x.give(ctx, reply, engine.Record{Kind: kindEnd, Data: encode(records.End{Stop: acp.StopCancelled})}), end())
	}
	return err
}

// give gives a record to the turn that runs, if one does.
func (x *export) give(ctx context.Context, reply *acp.Reply, r engine.Record) error {
	if reply == nil {
		return nil
	}
	select {
	case x.next <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prompt is a turn: it sends what was said in it.
func (x *export) prompt(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	for {
		select {
		case r := <-x.next:
			if r.Kind == kindEnd {
				e, err := records.DecodeEnd(r.Data)
				if err != nil {
					return "", err
				}
				end := outcomeOfEnd(&e, 0)
				return end.stop, end.err
			}
			if err := x.send(t.Session(), r); err != nil {
				return "", err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// send sends a record other than a prompt or an end.
func (x *export) send(as *acp.AgentSession, r engine.Record) error {
	switch r.Kind {
	case kindAsk:
		var a records.Asked
		if err := json.Unmarshal(r.Data, &a); err != nil {
			return err
		}
		return as.Notice(acp.NoticeSeverityInfo, "The agent asks: "+a.Title, "")
	case kindAnswer:
		var a records.Decided
		if err := json.Unmarshal(r.Data, &a); err != nil {
			return err
		}
		if a.Update(&r) != nil {
			break
		}
		return as.Notice(acp.NoticeSeverityInfo, fmt.Sprintf("The answer is %s, by %s.", a.Outcome, a.By), "")
	case kindEnd: // without a prompt
		return nil
	}
	return sendRecord(as, "", &children{as: as}, r)
}
