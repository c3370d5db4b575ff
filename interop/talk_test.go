package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/jsonrpc"
)

// talkLimit bounds what one test does with an agent.
const talkLimit = 20 * time.Second

// A peer is an agent on the official SDK, and our client connected to it.
type peer struct {
	version int
	conn    *acp.ClientConn
	dir     string // the root of the files that are lent

	mu         sync.Mutex
	told       []*acp.Update // by the Update hook
	changed    chan struct{} // closed when told has grown
	permission func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error)
	asked      []*acp.PermissionRequest
	notes      []string // of _tspeer/client_note
	completed  []acp.ElicitationID
	logins     []acp.AuthState
}

// dial starts an agent and connects to it. A highest version of 0 is
// the default.
func dial(t *testing.T, highest int, args ...string) *peer {
	t.Helper()
	p := &peer{dir: t.TempDir(), changed: make(chan struct{})}
	client := &acp.Client{
		Info:       acp.Implementation{Name: "interop", Version: "1"},
		MaxVersion: highest,
		Update:     p.update,
		RequestPermission: func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			p.mu.Lock()
			p.asked = append(p.asked, r)
			decide := p.permission
			p.mu.Unlock()
			if decide == nil {
				return r.Allow(), nil
			}
			return decide(ctx, r)
		},
		Elicit: func(_ context.Context, r *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			if r.Form == nil {
				return acp.AcceptElicitation(nil), nil
			}
			return acp.AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"Ada"`)}), nil
		},
		ElicitationComplete: func(_ context.Context, id acp.ElicitationID) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.completed = append(p.completed, id)
		},
		AuthStatus: func(_ context.Context, s *acp.AuthStatus) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.logins = append(p.logins, s.State)
		},
		Files:     acphost.Dir(p.dir),
		Terminals: func(*acp.ClientConn) acp.TerminalHost { return acphost.Local(p.dir) },
		MCP:       toyMCP,
		Extensions: func(mux *jsonrpc.Mux) {
			jsonrpc.Method[json.RawMessage, map[string]json.RawMessage]{Name: "_tspeer/client_echo"}.Handle(mux,
				func(_ context.Context, params *json.RawMessage) (*map[string]json.RawMessage, error) {
					return &map[string]json.RawMessage{"echoed": *params}, nil
				})
			jsonrpc.Notification[struct{ V string }]{Name: "_tspeer/client_note"}.Handle(mux,
				func(_ context.Context, n *struct{ V string }) error {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.notes = append(p.notes, n.V)
					return nil
				})
		},
	}
	agent := acp.Command(args[0], args[1:]...)
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	conn, err := client.Connect(ctx, agent)
	if err != nil {
		t.Fatal(err)
	}
	p.conn, p.version = conn, conn.Version()
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), conn.Wait()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// toyMCP is the MCP server that !mcp and !mcpcancel call.
func toyMCP(ctx context.Context, m *acp.MCPCall) (json.RawMessage, error) {
	switch m.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[{"name":"echo"}]}`), nil
	case "null":
		return nil, nil
	case "boom":
		return nil, errors.New("the handler broke")
	case "tools/call":
		var call struct {
			Name      string
			Arguments struct{ V int }
		}
		if err := json.Unmarshal(m.Params, &call); err != nil {
			return nil, err
		}
		if call.Name == "slow" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for i := range 2 {
			if err := m.Notify(ctx, "notifications/progress", fmt.Appendf(nil, `{"progressToken":1,"progress":%d}`, i)); err != nil {
				return nil, err
			}
		}
		return fmt.Appendf(nil, `{"content":[{"type":"text","text":"%d"}]}`, call.Arguments.V), nil
	}
	return nil, &acp.MCPFailure{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}
}

func (p *peer) update(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, u)
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits for an update of a session that is as wanted.
func (p *peer) await(t *testing.T, s *acp.ClientSession, wanted string) {
	t.Helper()
	timeout := time.NewTimer(talkLimit)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		for _, u := range p.told {
			if u.Session == s && describe(u) == wanted {
				p.mu.Unlock()
				return
			}
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("no update %q", wanted)
		}
	}
}

// toldOf returns what the Update hook was told of a session.
func (p *peer) toldOf(s *acp.ClientSession) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, u := range p.told {
		if u.Session == s {
			list = append(list, describe(u))
		}
	}
	return list
}

// describe puts an update into a few words. Those that the agent did not send
// begin with a tilde, those that are history with "old".
func describe(u *acp.Update) string {
	text := describeUpdate(u.Update)
	switch {
	case u.Synthetic:
		return "~" + text
	case u.Replayed:
		return "old " + text
	}
	return text
}

func describeUpdate(u acp.SessionUpdate) string {
	switch u := u.(type) {
	case *acp.UserMessage:
		return "user " + content(u.Content.Or(nil)...)
	case *acp.UserMessageChunk:
		return "user+ " + content(u.Content)
	case *acp.AgentMessage:
		return "agent " + content(u.Content.Or(nil)...)
	case *acp.AgentMessageChunk:
		return "say " + content(u.Content)
	case *acp.AgentThought:
		return "thought " + content(u.Content.Or(nil)...)
	case *acp.AgentThoughtChunk:
		return "think " + content(u.Content)
	case *acp.RunningStateUpdate:
		return "running" + background(u.Background)
	case *acp.RequiresActionStateUpdate:
		return "requires action"
	case *acp.IdleStateUpdate:
		return strings.TrimSpace("idle "+string(u.StopReason)) + background(u.Background)
	case *acp.ToolCallUpdate:
		return "tool" + field("name", u.Name) + field("title", u.Title) + field("kind", u.Kind) + field("status", u.Status) +
			counted("content", u.Content) + counted("locations", u.Locations) + field("capabilities", u.Capabilities)
	case *acp.PlanUpdate:
		if items, ok := u.Plan.(*acp.PlanItems); ok {
			return fmt.Sprintf("plan %s of %d", items.PlanID, len(items.Entries))
		}
		if text, ok := u.Plan.(*acp.PlanMarkdown); ok {
			return fmt.Sprintf("PlanMarkdown %s", text.PlanID)
		}
	case *acp.PlanRemoved:
		return fmt.Sprintf("PlanRemoved %s", u.PlanID)
	case *acp.SessionInfoUpdate:
		return "SessionInfoUpdate" + field("title", u.Title) + field("updatedAt", u.UpdatedAt)
	case *acp.UsageUpdate:
		return fmt.Sprintf("UsageUpdate %d/%d", u.Used, u.Size)
	case *acp.Notice:
		return fmt.Sprintf("Notice %s", u.Severity)
	case *acp.CompactionUpdate:
		return fmt.Sprintf("CompactionUpdate %s", u.Status)
	case *acp.SubagentUpdate:
		return fmt.Sprintf("SubagentUpdate %s %s", u.SessionID, describeUpdate(u.State.Or(nil)))
	case *acp.UnknownSessionUpdate:
		return "unknown " + string(u.Raw)
	}
	return typeName(u)
}

func typeName(v any) string {
	name := fmt.Sprintf("%T", v)
	return name[strings.LastIndex(name, ".")+1:]
}

// field is a field of an update: its value, null, or nothing when it is absent.
func field[T any](name string, p acp.Patch[T]) string {
	if p.IsClear() {
		return " " + name + "=null"
	}
	v, ok := p.Get()
	switch any(v).(type) {
	case string, acp.ToolKind, acp.ToolCallStatus:
		name += fmt.Sprintf("=%v", v)
	}
	if !ok {
		return ""
	}
	return " " + name
}

// counted is field for a list.
func counted[T any](name string, p acp.Patch[[]T]) string {
	if v, ok := p.Get(); ok {
		return fmt.Sprintf(" %s=%d", name, len(v))
	}
	return field(name, p)
}

func background(work []acp.BackgroundWork) string {
	if work == nil {
		return ""
	}
	return fmt.Sprintf(", %d in the background", len(work))
}

// content is the text of blocks, or the type of those that are none. Long texts
// are cut.
func content(blocks ...acp.ContentBlock) string {
	var list []string
	for _, b := range blocks {
		text, ok := b.(*acp.TextContent)
		switch {
		case !ok:
			list = append(list, "<"+typeName(b)+">")
		case len(text.Text) > 200:
			list = append(list, fmt.Sprintf("%.3s… (%d bytes)", text.Text, len(text.Text)))
		default:
			list = append(list, text.Text)
		}
	}
	return strings.Join(list, " ")
}

// settle lets the agent get through what it was sent: the SDK begins to handle
// things in order.
func (p *peer) settle(t *testing.T) {
	t.Helper()
	for range 2 {
		var echo json.RawMessage
		if err := p.conn.Conn().Call(t.Context(), "_tspeer/echo", nil, &echo); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a session in the directory of the files that are lent.
func (p *peer) open(t *testing.T, servers ...acp.MCPServer) *acp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	s, err := p.conn.NewSession(ctx, acp.SessionConfig{Cwd: p.dir, MCPServers: servers})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A turn is a prompt and what came of it.
type turn struct {
	list   []string // the updates of the reply
	result *acp.Result
	err    error
}

// said is the text of the reply.
func (t *turn) said() string {
	var b strings.Builder
	for _, u := range t.list {
		if text, ok := strings.CutPrefix(u, "say "); ok {
			b.WriteString(text)
		}
	}
	return b.String()
}

// read reads a reply to its end.
func read(r *acp.Reply) *turn {
	o := new(turn)
	for u, err := range r.Updates() {
		if err == nil {
			o.list = append(o.list, describe(u))
		}
	}
	o.result, o.err = r.Wait()
	return o
}

// say prompts, and waits for the end of the turn.
func say(t *testing.T, s *acp.ClientSession, text string) *turn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	return read(s.Prompt(ctx, acp.Text(text)))
}

// writeFile writes a file among those that are lent and returns its path.
func (p *peer) writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := p.dir + string(os.PathSeparator) + name
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
