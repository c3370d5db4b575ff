package interop

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// decide sets how permissions are decided for the length of a test.
func (p *peer) decide(t *testing.T, f func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error)) {
	t.Helper()
	set := func(f func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.permission = f
	}
	set(f)
	t.Cleanup(func() { set(nil) })
}

// lastAsked is the latest permission the agent asked for.
func (p *peer) lastAsked(t *testing.T) *acp.PermissionRequest {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		t.Fatal("nothing was asked")
	}
	return p.asked[len(p.asked)-1]
}

// permitted are the updates of a turn in which !perm is answered.
func permitted(version int, answer string) []string {
	if version == 1 {
		return framed(1, "!perm", "idle end_turn", "say "+answer)
	}
	return framed(2, "!perm", "idle end_turn", "requires action", "running", "say "+answer)
}

func permission(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!perm"), acp.StopEndTurn, permitted(p.version, "perm:selected:allow"))
	r := p.lastAsked(t)
	if p.version == 1 {
		if r.Title != "Run" || r.ToolCall == nil || r.ToolCall.ToolCallID != "perm-1" || len(r.Options) != 2 {
			t.Errorf("asked %+v", r)
		}
		return
	}
	want := &acp.CommandPermissionSubject{Command: "ls", Cwd: "/tmp"}
	if r.Title != "Run?" || r.Description != "d" || len(r.Options) != 2 || !cmp.Equal(r.Subject, acp.RequestPermissionSubject(want)) {
		t.Errorf("asked %+v", r)
	}
}

func permissionRejected(t *testing.T, p *peer) {
	p.decide(t, func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return r.Reject(), nil
	})
	ends(t, say(t, p.open(t), "!perm"), acp.StopEndTurn, permitted(p.version, "perm:selected:reject"))
}

// permissionCancelled cancels the turn while the user is being asked. In version
// 1 the client answers by itself, in version 2 the agent withdraws the question.
func permissionCancelled(t *testing.T, p *peer) {
	asking := make(chan error, 1)
	p.decide(t, func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
		asking <- r.Session.Cancel(ctx)
		<-ctx.Done()
		return acp.PermissionDecision{}, ctx.Err()
	})
	o := say(t, p.open(t), "!perm")
	want := framed(2, "!perm", "idle cancelled", "requires action")
	if p.version == 1 {
		want = framed(1, "!perm", "idle cancelled", "say perm:cancelled")
	}
	ends(t, o, acp.StopCancelled, want)
	if err := <-asking; err != nil {
		t.Error(err)
	}
}

// permissionWithdrawn lets the agent take a question back.
func permissionWithdrawn(t *testing.T, p *peer) {
	p.decide(t, func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
		<-ctx.Done()
		return acp.PermissionDecision{}, ctx.Err()
	})
	ends(t, say(t, p.open(t), "!permcancel"), acp.StopEndTurn,
		framed(1, "!permcancel", "idle end_turn", "say permcancel:result:cancelled"))
}

func permissionTool(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!permtool"), acp.StopEndTurn, framed(2, "!permtool", "idle end_turn", "say perm:selected"))
	if r := p.lastAsked(t); r.ToolCall == nil || r.ToolCall.ToolCallID != "pt" || r.ToolCall.Title.Or("") != "Edit" {
		t.Errorf("asked %+v", r)
	}
}

// permissionCustom is a question nobody but the user can understand: Allow does
// not choose an option of an unknown kind.
func permissionCustom(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!permcustom"), acp.StopEndTurn, framed(2, "!permcustom", "idle end_turn", "say perm:cancelled"))
	r := p.lastAsked(t)
	raw, err := r.Subject.AppendJSON(nil)
	if err != nil || string(raw) != `{"type":"_vendor","q":1}` || r.Options[0].Kind != "_custom" {
		t.Errorf("asked %+v about %s, %v", r, raw, err)
	}
	p.decide(t, func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return acp.SelectPermission(r.Options[0].OptionID), nil
	})
	ends(t, say(t, p.open(t), "!permcustom"), acp.StopEndTurn, framed(2, "!permcustom", "idle end_turn", "say perm:selected"))
}

func elicit(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!elicit"), acp.StopEndTurn,
		framed(p.version, "!elicit", "idle end_turn", `say elicit:accept:{"name":"Ada"}`))
}

func elicitURL(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!eliciturl"), acp.StopEndTurn, framed(p.version, "!eliciturl", "idle end_turn", "say eliciturl:accept"))
	got := arrives(t, p, func() []acp.ElicitationID { return p.completed })
	if !slices.Equal(got, []acp.ElicitationID{"e1"}) {
		t.Errorf("completed: %q", got)
	}
}

// arrives waits for a notification that belongs to no session, and so has a queue
// of its own.
func arrives[T any](t *testing.T, p *peer, list func() []T) []T {
	t.Helper()
	ctx := limited(t)
	for ctx.Err() == nil {
		p.mu.Lock()
		got := slices.Clone(list())
		p.mu.Unlock()
		if len(got) > 0 {
			return got
		}
		p.settle(t)
	}
	return nil
}

func extNote(t *testing.T, p *peer) {
	ends(t, say(t, p.open(t), "!extnote v1"), acp.StopEndTurn, framed(p.version, "!extnote v1", "idle end_turn", "say noted"))
	if got := arrives(t, p, func() []string { return p.notes }); !slices.Equal(got, []string{"v1"}) {
		t.Errorf("notes %q", got)
	}
}

func readFile(t *testing.T, p *peer) {
	prompt := "!read " + p.writeFile(t, "f.txt", "one\ntwo")
	ends(t, say(t, p.open(t), prompt), acp.StopEndTurn, framed(1, prompt, "idle end_turn", "say read:one\ntwo"))
}

func readMissing(t *testing.T, p *peer) {
	path := filepath.Join(p.dir, "missing")
	if o := say(t, p.open(t), "!read "+path); !errors.Is(o.err, jsonrpc.ErrResourceNotFound) {
		t.Errorf("error %v", o.err)
	}
}

// readElsewhere asks for a file that is not lent.
func readElsewhere(t *testing.T, p *peer) {
	var said *jsonrpc.Error
	if o := say(t, p.open(t), "!read /etc/passwd"); !errors.As(o.err, &said) || said.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("%v, error %v", o.list, o.err)
	}
}

func writeFile(t *testing.T, p *peer) {
	path := filepath.Join(p.dir, "g.txt")
	prompt := "!write " + path + " some  text"
	ends(t, say(t, p.open(t), prompt), acp.StopEndTurn, framed(1, prompt, "idle end_turn", "say written"))
	if text, err := os.ReadFile(path); string(text) != "some  text" || err != nil {
		t.Errorf("wrote %q, %v", text, err)
	}
}

func mcp(t *testing.T, p *peer) {
	s := p.open(t, &acp.MCPServerACP{Name: "toy", ServerID: "toy-1"})
	for _, tt := range []struct{ call, out string }{
		{"toy-1 tools/list", `{"result":{"tools":[{"name":"echo"}]}}`},
		{`toy-1 tools/call {"name":"echo","arguments":{"v":7}}`, `{"result":{"content":[{"type":"text","text":"7"}]}}`},
		{"toy-1 null", `{"result":null}`},
		{"toy-1 nope", `{"error":{"code":-32601,"message":"Method not found"}}`},
		{"toy-1 boom", `{"outer":-33002}`},
		{"nobody tools/list", `{"outer":-33001,"data":{"serverId":"nobody"}}`},
		{`toy-1 tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}}`,
			`{"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":"1999-01-01","supported":["2026-07-28"]}}}`},
	} {
		o := say(t, s, "!mcp "+tt.call)
		var got struct{ Out json.RawMessage }
		if err := json.Unmarshal([]byte(o.said()), &got); err != nil || string(got.Out) != tt.out {
			t.Errorf("%s: %s, want %s", tt.call, o.said(), tt.out)
		}
	}
}

func mcpCancel(t *testing.T, p *peer) {
	s := p.open(t, &acp.MCPServerACP{Name: "toy", ServerID: "toy-2"})
	ends(t, say(t, s, "!mcpcancel toy-2"), acp.StopEndTurn,
		framed(p.version, "!mcpcancel toy-2", "idle end_turn", "say mcpcancel:-32800"))
}
