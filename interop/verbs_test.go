package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// verbs are what an agent can be asked for besides prompts.
var verbs = []word{
	{name: "initialize", play: initialize},
	{name: "login and logout", play: login},
	{name: "session/new", play: newSession},
	{name: "options", play: options},
	{name: "session/list", play: list},
	{name: "session/load", play: load},
	{name: "session/resume", play: resume},
	{name: "restore", play: restore},
	{name: "session/fork", play: fork},
	{name: "session/archive", play: archive},
	{name: "session/status", play: status},
	{name: "session/set_title", play: setTitle},
	{name: "session/close", play: closeSession},
	{name: "session/delete", play: deleteSession},
	{name: "providers", play: providers},
	{name: "_tspeer/echo", play: extEcho},
	{name: "_tspeer/sleep", play: extSleep},
	{name: "_tspeer/throw", play: extThrow},
	{name: "_tspeer/note", play: extNotes},
	{name: "_tspeer/init", play: extInit},
}

// limited is a context for one test.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	t.Cleanup(cancel)
	return ctx
}

func initialize(t *testing.T, p *peer) {
	if got, want := p.conn.Agent().Name, fmt.Sprintf("tspeer-v%d-agent", p.version); got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	if got, want := string(p.conn.Meta()), fmt.Sprintf(`{"tspeer":{"script":%d,"unstable":true}}`, p.version); got != want {
		t.Errorf("meta %s, want %s", got, want)
	}
	caps := p.conn.Capabilities()
	if s := caps.Session; s == nil || s.Prompt == nil || s.Prompt.Image == nil || s.Fork == nil || s.MCP == nil || s.MCP.ACP == nil {
		t.Errorf("capabilities %+v", caps.Session)
	}
}

func login(t *testing.T, p *peer) {
	ctx := limited(t)
	cfg := acp.SessionConfig{Cwd: p.dir, Meta: json.RawMessage(`{"tspeer":{"authRequired":true}}`)}
	state := func(want acp.AuthState) {
		t.Helper()
		if s, err := p.conn.AuthStatus(ctx); err != nil || s.State != want {
			t.Errorf("status %+v, %v, want %s", s, err, want)
		}
	}
	state(acp.AuthStateUnauthenticated)
	if p.version == 1 { // the agent of version 2 does not have the switch
		if _, err := p.conn.NewSession(ctx, cfg); !errors.Is(err, jsonrpc.ErrAuthRequired) {
			t.Errorf("new session: %v", err)
		}
	}
	if err := p.conn.Login(ctx, "nobody"); err == nil {
		t.Error("logged in by a method there is not")
	}
	methods := p.conn.AuthMethods()
	if len(methods) != 1 {
		t.Fatalf("methods %+v", methods)
	}
	if err := p.conn.Login(ctx, "tspeer-login"); err != nil {
		t.Fatal(err)
	}
	state(acp.AuthStateAuthenticated)
	if _, err := p.conn.NewSession(ctx, cfg); err != nil {
		t.Errorf("new session: %v", err)
	}
	if err := p.conn.Logout(ctx); err != nil {
		t.Error(err)
	}
	state(acp.AuthStateUnauthenticated)
}

// newSession: the agent tells in _meta what it was asked for.
func newSession(t *testing.T, p *peer) {
	ctx := limited(t)
	s, err := p.conn.NewSession(ctx, acp.SessionConfig{
		Cwd: p.dir, AdditionalDirectories: []string{"/opt"},
		MCPServers: []acp.MCPServer{
			&acp.MCPServerStdio{Name: "s", Command: "/bin/true", Args: []string{"a"}, Env: []acp.EnvVariable{{Name: "K", Value: "V"}}},
			&acp.MCPServerHTTP{Name: "h", URL: "https://e/x", Headers: []acp.HTTPHeader{{Name: "A", Value: "B"}}},
			&acp.MCPServerACP{Name: "a", ServerID: "id-1"},
		},
		SystemPrompt: &acp.SystemPrompt{Mode: acpv2.SystemPromptModeAppend, Content: []acp.ContentBlock{acp.Text("be nice")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stdio := `{"name":"s","command":"/bin/true","args":["a"],"env":[{"name":"K","value":"V"}]}`
	if p.version == 2 {
		stdio = `{"type":"stdio",` + stdio[1:]
	}
	want := `{"tspeer":{"mcpServers":[` + stdio + `,` +
		`{"type":"http","name":"h","url":"https://e/x","headers":[{"name":"A","value":"B"}]},` +
		`{"type":"acp","name":"a","serverId":"id-1"}],"additionalDirectories":["/opt"],` +
		`"systemPrompt":{"mode":"append","content":[{"type":"text","text":"be nice"}]}}}`
	if diff := cmp.Diff(parse(t, want), parse(t, string(s.Meta()))); diff != "" {
		t.Errorf("meta (-want +got):\n%s", diff)
	}
	if _, err := p.conn.NewSession(ctx, acp.SessionConfig{Cwd: "relative"}); err == nil {
		t.Error("a relative directory was accepted")
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// value is an option's.
func value(t *testing.T, s *acp.ClientSession, id acp.SessionConfigID) string {
	t.Helper()
	for _, o := range s.Options() {
		if o.ConfigID != id {
			continue
		}
		switch kind := o.Kind.(type) {
		case *acp.SessionConfigSelect:
			return string(kind.CurrentValue)
		case *acp.SessionConfigBoolean:
			return fmt.Sprint(kind.CurrentValue)
		}
	}
	return "none"
}

func options(t *testing.T, p *peer) {
	ctx := limited(t)
	s := p.open(t)
	if got := value(t, s, "model") + " " + value(t, s, "web"); got != "fast false" {
		t.Errorf("options %s", got)
	}
	if err := errors.Join(s.SetModel(ctx, "smart"), s.SetOption(ctx, "web", &acp.SessionConfigOptionValueBoolean{Value: true})); err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "model") + " " + value(t, s, "web"); got != "smart true" {
		t.Errorf("options after the change %s", got)
	}
	if err := s.SetOption(ctx, "nobody", &acp.SessionConfigOptionValueID{Value: "x"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an option there is not: %v", err)
	}
	if p.version == 2 { // without modes
		if err := s.SetMode(ctx, "code"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("set mode: %v", err)
		}
		return
	}
	if err := s.SetMode(ctx, "code"); err != nil || value(t, s, "mode") != "code" {
		t.Errorf("mode %s, %v", value(t, s, "mode"), err)
	}
	if err := s.SetMode(ctx, "nope"); !errors.Is(err, jsonrpc.ErrInvalidParams) || value(t, s, "mode") != "code" {
		t.Errorf("mode %s, %v", value(t, s, "mode"), err)
	}
}

// ids are the sessions an agent lists.
func ids(t *testing.T, p *peer, o acp.ListOptions) []acp.SessionID {
	t.Helper()
	var list []acp.SessionID
	for info, err := range p.conn.ListSessions(limited(t), o) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info.SessionID)
	}
	return list
}

// list goes through pages of two.
func list(t *testing.T, p *peer) {
	dir := t.TempDir()
	var want []acp.SessionID
	for range 5 {
		s, err := p.conn.NewSession(limited(t), acp.SessionConfig{Cwd: dir})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, s.ID())
	}
	if got := ids(t, p, acp.ListOptions{Cwd: dir}); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

// history are the updates that load tells of a session in which "hello" was said.
func history(version int) []string {
	if version == 1 {
		return []string{"old user+ hello", "old say echo:hello"}
	}
	// The end of a turn belongs to the history, although this agent sends it as the state that follows.
	return []string{"old user hello", "old agent echo:hello", "old idle end_turn"}
}

func load(t *testing.T, p *peer) {
	s := p.open(t)
	if o := say(t, s, "hello"); o.err != nil {
		t.Fatal(o.err)
	}
	before := len(p.toldOf(s))
	again, err := p.conn.Load(limited(t), s.ID(), acp.SessionConfig{Cwd: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(history(p.version), p.toldOf(again)[before:]); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if _, err := p.conn.Load(limited(t), "nope", acp.SessionConfig{Cwd: p.dir}); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
		t.Errorf("load of a session there is not: %v", err)
	}
}

func resume(t *testing.T, p *peer) {
	s := p.open(t)
	if o := say(t, s, "hello"); o.err != nil {
		t.Fatal(o.err)
	}
	if err := s.Close(limited(t)); err != nil {
		t.Fatal(err)
	}
	again, err := p.conn.Resume(limited(t), s.ID(), acp.SessionConfig{Cwd: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	if told := p.toldOf(again); slices.ContainsFunc(told, func(u string) bool { return strings.Contains(u, "hello") }) {
		t.Errorf("told %q", told)
	}
	if o := say(t, again, "on"); o.said() != "echo:on" || o.err != nil {
		t.Errorf("afterwards %q, %v", o.said(), o.err)
	}
}

func restore(t *testing.T, p *peer) {
	ctx := limited(t)
	s := p.open(t)
	for _, tt := range []struct {
		id     acp.SessionID
		replay bool
		how    acp.Restored
	}{
		{s.ID(), false, acp.RestoredResumed}, {s.ID(), true, acp.RestoredLoaded}, {"nope", true, acp.RestoredNew}, {"", false, acp.RestoredNew},
	} {
		got, how, err := p.conn.Restore(ctx, tt.id, acp.SessionConfig{Cwd: p.dir, Replay: tt.replay})
		if err != nil || how != tt.how || (got.ID() == tt.id) != (how != acp.RestoredNew) {
			t.Errorf("restore %q, replay %t: %v, %v, want %v", tt.id, tt.replay, how, err, tt.how)
		}
	}
}

func fork(t *testing.T, p *peer) {
	s := p.open(t)
	other, err := s.Fork(limited(t), acp.SessionConfig{Cwd: p.dir})
	if err != nil || other.ID() == s.ID() {
		t.Fatalf("%v, %v", other, err)
	}
	if o := say(t, other, "hello"); o.said() != "echo:hello" || o.err != nil {
		t.Errorf("%q, %v", o.said(), o.err)
	}
}

func archive(t *testing.T, p *peer) {
	ctx := limited(t)
	dir := t.TempDir()
	s, err := p.conn.NewSession(ctx, acp.SessionConfig{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	one := []acp.SessionID{s.ID()}
	if err := p.conn.Archive(ctx, s.ID()); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, p, acp.ListOptions{Cwd: dir}); len(got) != 0 {
		t.Errorf("listed %q", got)
	}
	if got := ids(t, p, acp.ListOptions{Cwd: dir, Archived: acp.SessionArchiveFilterOnly}); !slices.Equal(got, one) {
		t.Errorf("archived %q", got)
	}
	if err := p.conn.Unarchive(ctx, s.ID()); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, p, acp.ListOptions{Cwd: dir}); !slices.Equal(got, one) {
		t.Errorf("listed afterwards %q", got)
	}
}

func status(t *testing.T, p *peer) {
	ctx := limited(t)
	s := p.open(t)
	if r, err := p.conn.Status(ctx, s.ID()); err != nil || r.Status != acp.SessionStatusOpen {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if r, err := p.conn.Status(ctx, s.ID()); err != nil || r.Status != acp.SessionStatusSaved {
		t.Errorf("closed: %+v, %v", r, err)
	}
	if _, err := p.conn.Status(ctx, "nope"); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
		t.Errorf("no session: %v", err)
	}
}

func setTitle(t *testing.T, p *peer) {
	s := p.open(t)
	if title, err := s.SetTitle(limited(t), "  hi "); err != nil || title != "hi" {
		t.Errorf("%q, %v", title, err)
	}
}

func closeSession(t *testing.T, p *peer) {
	ctx := limited(t)
	s := p.open(t)
	reply := s.Prompt(ctx, acp.Text("!hang"))
	p.await(t, s, "say hanging")
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	// In version 2 the end of the turn comes before the answer (S43).
	o := read(reply)
	ended := o.err == nil && o.result.StopReason == acp.StopCancelled
	if !ended && (p.version == 2 || !errors.Is(o.err, acp.ErrSessionClosed)) {
		t.Errorf("the turn: %+v, %v", o.result, o.err)
	}
	if _, err := s.Prompt(ctx, acp.Text("x")).Wait(); !errors.Is(err, acp.ErrSessionClosed) {
		t.Errorf("prompt: %v", err)
	}
	if err := p.conn.CloseSession(ctx, "nope"); err != nil { // S31
		t.Errorf("close of nothing: %v", err)
	}
}

func deleteSession(t *testing.T, p *peer) {
	s := p.open(t)
	for range 2 { // S31
		if err := p.conn.Delete(limited(t), s.ID()); err != nil {
			t.Error(err)
		}
	}
}

func providers(t *testing.T, p *peer) {
	ctx := limited(t)
	current := func() *acpv2.ProviderCurrentConfig {
		t.Helper()
		list, err := p.conn.Providers(ctx)
		if err != nil || len(list) != 1 || list[0].ProviderID != "main" {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0].Current
	}
	if err := p.conn.SetProvider(ctx, &acp.ProviderSetting{ProviderID: "main", APIType: acpv2.LLMProtocolAnthropic, BaseURL: "https://llm"}); err != nil {
		t.Fatal(err)
	}
	if c := current(); c == nil || c.BaseURL != "https://llm" {
		t.Errorf("current %+v", c)
	}
	if err := p.conn.DisableProvider(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	if c := current(); c != nil {
		t.Errorf("current afterwards %+v", c)
	}
}

// ext calls an extension method of the agent.
func (p *peer) ext(ctx context.Context, method, params string) (string, error) {
	var result json.RawMessage
	var raw any
	if params != "" {
		raw = json.RawMessage(params)
	}
	err := p.conn.Conn().Call(ctx, method, raw, &result)
	return string(result), err
}

func extEcho(t *testing.T, p *peer) {
	for params, want := range map[string]string{"": `{"echoed":null}`, `{"q":[1,null]}`: `{"echoed":{"q":[1,null]}}`} {
		if got, err := p.ext(limited(t), "_tspeer/echo", params); err != nil || got != want {
			t.Errorf("%s: %s, %v", params, got, err)
		}
	}
}

func extSleep(t *testing.T, p *peer) {
	ctx, cancel := context.WithCancel(t.Context())
	p.settle(t)
	slept := make(chan error, 1)
	go func() {
		var result json.RawMessage
		slept <- p.conn.Conn().Call(ctx, "_tspeer/sleep", json.RawMessage(`{"ms":60000}`), &result, jsonrpc.AwaitAnswer())
	}()
	p.settle(t)
	cancel()
	if err := <-slept; !errors.Is(err, jsonrpc.ErrRequestCancelled) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func extThrow(t *testing.T, p *peer) {
	var said *jsonrpc.Error
	if _, err := p.ext(limited(t), "_tspeer/throw", "{}"); !errors.As(err, &said) || said.Code != jsonrpc.CodeInternalError {
		t.Errorf("%v", err)
	}
}

func extNotes(t *testing.T, p *peer) {
	if err := p.conn.Conn().Notify(t.Context(), "_tspeer/note", json.RawMessage(`{"k":7}`)); err != nil {
		t.Fatal(err)
	}
	p.settle(t)
	if got, err := p.ext(limited(t), "_tspeer/notes", ""); err != nil || got != `{"notes":[{"k":7}]}` {
		t.Errorf("%s, %v", got, err)
	}
}

// extInit is what the agent makes of our initialize.
func extInit(t *testing.T, p *peer) {
	got, err := p.ext(limited(t), "_tspeer/init", "")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"init":{"protocolVersion":2,"info":{"name":"interop","version":"1"},"capabilities":{"elicitation":{"form":{},"url":{}}}}}`
	if p.version == 1 {
		want = `{"init":{"protocolVersion":1,"clientInfo":{"name":"interop","version":"1"},"clientCapabilities":{` +
			`"auth":{"terminal":false},"elicitation":{"form":{},"url":{}},"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,` +
			`"plan":{},"subagents":{},"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}}}}}`
	}
	if diff := cmp.Diff(parse(t, want), parse(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
