// Command testy is an agent that does what its prompts tell it, on standard
// input and output and in both versions of the protocol: it is for testing
// clients.
//
//	testy [-stable] [-protocol 1|2] [-script 1|2]
//
// The first word of a prompt selects what happens, the table words in words.go
// lists what there is. Anything else is echoed. With -stable it offers only what
// the stable protocol has, with -protocol it speaks one version only. With -script it
// follows the script of one version whatever it speaks, for clients that reach it
// through a bridge.
//
// It is also an example of an agent that uses nearly everything package acp has;
// a better first one is examples/echo.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

func main() {
	var o options
	flag.BoolVar(&o.stable, "stable", false, "offer nothing experimental")
	flag.IntVar(&o.protocol, "protocol", 0, "speak one `version` only, 1 or 2")
	flag.IntVar(&o.script, "script", 0, "follow the script of one `version`, 1 or 2; the one spoken by default")
	flag.Parse()
	if flag.NArg() > 0 || o.protocol < 0 || o.protocol > 2 || o.script < 0 || o.script > 2 {
		fmt.Fprintln(os.Stderr, "usage: testy [-stable] [-protocol 1|2] [-script 1|2]")
		os.Exit(2)
	}
	// Some clients leave their agents in their own process group, so that Ctrl-C in
	// a terminal reaches both. It is for the client to cancel the turn, or to end
	// our input, which ends us.
	signal.Ignore(os.Interrupt)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serve(context.Background(), jsonrpc.Stdio(), o, log); err != nil {
		fmt.Fprintln(os.Stderr, "testy:", err)
		os.Exit(1)
	}
}

// options are the program's.
type options struct {
	stable           bool
	protocol, script int // 0: any
}

// serve runs the agent for the client at the other end of a stream.
func serve(ctx context.Context, stream jsonrpc.Stream, o options, log *slog.Logger) error {
	line := &line{Stream: stream}
	a := newTesty(o, line.WriteFrame)
	agent := a.agent()
	agent.MinVersion, agent.MaxVersion = o.protocol, o.protocol
	agent.Logger = log
	return agent.Serve(ctx, acp.Over(line))
}

// line is a stream into which something else can be written between two frames.
type line struct {
	jsonrpc.Stream
	mu sync.Mutex
}

func (l *line) WriteFrame(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Stream.WriteFrame(data)
}

// testy is what the hooks share.
type testy struct {
	options
	raw func(data []byte) error // writes data as a line of its own

	mu       sync.Mutex
	hello    json.RawMessage // the client's initialize
	loggedIn bool
	provider *acpv2.ProviderCurrentConfig
	notes    []json.RawMessage
	made     int                      // sessions so far
	saved    map[acp.SessionID]*saved // all that were not deleted
}

func newTesty(o options, raw func([]byte) error) *testy {
	return &testy{options: o, raw: raw, saved: map[acp.SessionID]*saved{}}
}

// agent is the agent's configuration.
func (a *testy) agent() *acp.Agent {
	agent := &acp.Agent{
		Info:       acp.Implementation{Name: "testy", Title: "Testy", Version: "1.0.0"},
		Initialize: a.initialize,
		Accept:     a.accept,
		Prompt:     a.prompt,

		NewSession:    a.newSession,
		ResumeSession: a.resumeSession,
		ListSessions:  a.listSessions,
		CloseSession:  func(context.Context, *acp.AgentSession) error { return nil },
		DeleteSession: a.deleteSession,

		AuthMethods: []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "tspeer-login", Name: "Log in"}},
		Login:       func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return a.setLogin(true) },
		Logout:      func(context.Context, *acp.AgentConn) error { return a.setLogin(false) },

		Content:               acp.PromptContent{Image: true, Audio: true, EmbeddedContext: true},
		MCP:                   acp.MCPTransports{Stdio: true, HTTP: true, SSE: true, ACP: !a.stable},
		AdditionalDirectories: true,
		Extensions:            a.extensions,
	}
	if a.stable {
		return agent
	}
	agent.ForkSession = a.forkSession
	agent.ForkSessionAt = a.forkSessionAt
	agent.Content.Skill = true
	agent.ArchiveSession = a.archiveSession
	agent.SessionStatus = a.sessionStatus
	agent.SessionOptions = a.sessionOptions
	agent.SetTitle = a.setTitle
	agent.SystemPrompt = acp.SystemPromptOverride
	agent.AuthStatus = a.authStatus
	agent.ListProviders = a.listProviders
	agent.SetProvider = a.setProvider
	agent.DisableProvider = a.disableProvider
	return agent
}

// initialize tells the test suite that there is a script, and which.
func (a *testy) initialize(ctx context.Context, c *acp.AgentConn) (json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hello = rawParams(ctx)
	return fmt.Appendf(nil, `{"tspeer":{"script":%d,"unstable":%t}}`, a.dialect(c), !a.stable), nil
}

// dialect returns the version of the script that a client follows.
func (a *testy) dialect(c *acp.AgentConn) int {
	if a.script != 0 {
		return a.script
	}
	return c.Version()
}

// rawParams returns the params of the request that ctx belongs to where they are
// not decoded.
func rawParams(ctx context.Context) json.RawMessage {
	switch p := jsonrpc.RequestFrom(ctx).Params.(type) {
	case json.RawMessage:
		return p
	case *json.RawMessage:
		return *p
	}
	return nil
}

func (a *testy) setLogin(in bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggedIn = in
	return nil
}

func (a *testy) authStatus(context.Context, *acp.AgentConn) (*acp.AuthStatus, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loggedIn {
		return &acp.AuthStatus{State: acp.AuthStateUnauthenticated}, nil
	}
	return &acp.AuthStatus{
		State:    acp.AuthStateAuthenticated,
		Accounts: []acp.AuthAccount{{Label: "tspeer", Active: new(true)}},
	}, nil
}

const mainProvider acp.ProviderID = "main"

func (a *testy) listProviders(context.Context, *acp.AgentConn) ([]acp.ProviderInfo, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []acp.ProviderInfo{{
		ProviderID: mainProvider,
		Supported:  []acpv2.LLMProtocol{acpv2.LLMProtocolAnthropic, acpv2.LLMProtocolOpenAI},
		Current:    a.provider,
	}}, nil
}

func (a *testy) setProvider(_ context.Context, _ *acp.AgentConn, p *acp.ProviderSetting) error {
	if p.ProviderID != mainProvider {
		return jsonrpc.ErrInvalidParams.WithData(map[string]acp.ProviderID{"providerId": p.ProviderID})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.provider = &acpv2.ProviderCurrentConfig{APIType: p.APIType, BaseURL: p.BaseURL}
	return nil
}

func (a *testy) disableProvider(_ context.Context, _ *acp.AgentConn, id acp.ProviderID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == mainProvider {
		a.provider = nil
	}
	return nil
}
