package acp

import (
	"context"
	"encoding/json"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// clientProtocol is what a protocol version does for the client's side of a
// connection: it turns verbs into messages of that version. What the agent did
// not advertise fails with an error that wraps errors.ErrUnsupported before
// anything is sent. Callers check the parameters.
type clientProtocol interface {
	version() int

	// register adds the handlers of every method the client offers.
	register(mux *jsonrpc.Mux)

	// initialized reads the agent's answer to initialize.
	initialized(p *clientPeer, raw json.RawMessage) error

	// open opens a session; id is that of the source or of the session itself.
	open(ctx context.Context, how clientOpening, id SessionID, cfg *SessionConfig, opts ...jsonrpc.CallOption) (*clientOpened, error)
	// canOpen returns why a session cannot be opened in this way, or nil.
	canOpen(how clientOpening) error
	// servers returns the transports of MCP servers the agent can use.
	servers() MCPTransports

	listSessions(ctx context.Context, q *SessionQuery) (*SessionPage, error)
	deleteSession(ctx context.Context, id SessionID, opt jsonrpc.CallOption) error
	closeSession(ctx context.Context, id SessionID, opt jsonrpc.CallOption) error
	// canClose reports whether the agent supports closing a session.
	canClose() bool
	archiveSession(ctx context.Context, id SessionID, archive bool, opt jsonrpc.CallOption) error
	sessionStatus(ctx context.Context, id SessionID) (*acpv2.SessionStatusResponse, error)
	// sessionOptions asks what a session would begin with.
	sessionOptions(ctx context.Context, q *OptionsQuery) (*OptionsPreview, error)
	setTitle(ctx context.Context, id SessionID, title string, opt jsonrpc.CallOption) (string, error)

	// prompt sends a prompt and returns the function that waits for the answer;
	// an error means that it was not sent.
	prompt(ctx context.Context, p *acpv2.PromptRequest, opts ...jsonrpc.CallOption) (answer clientAnswer, err error)
	// steer sends a message for the turn that runs by the extension for that.
	steer(ctx context.Context, m *clientSteer, opts ...jsonrpc.CallOption) (*json.RawMessage, error)
	// cancelSession calls still when session/cancel is next to be sent, and sends
	// it if still returns true. Otherwise it fails with jsonrpc.ErrNotSent.
	cancelSession(ctx context.Context, id SessionID, still func() bool) error
	setOption(ctx context.Context, s *ClientSession, id SessionConfigID, v SessionConfigOptionValue, opt jsonrpc.CallOption) (clientOptions, error)
	cancelToolCall(ctx context.Context, id SessionID, tool ToolCallID) error
	cancelTerminal(ctx context.Context, id SessionID, terminal TerminalID) error

	login(ctx context.Context, id AuthMethodID) error
	logout(ctx context.Context) error
	authStatus(ctx context.Context) (*AuthStatus, error)

	providers(ctx context.Context) ([]ProviderInfo, error)
	setProvider(ctx context.Context, p *ProviderSetting) error
	disableProvider(ctx context.Context, id ProviderID) error

	mcpNotify(ctx context.Context, n *acpv2.MessageMCPNotification) error
}

// clientOpening is a way to open a session.
type clientOpening uint8

const (
	clientOpenNew clientOpening = iota
	clientOpenFork
	clientOpenResume
	clientOpenLoad // resume, with history
)

// clientOpened is the answer to a request that opens a session.
type clientOpened struct {
	id       SessionID // of a new one
	options  []SessionConfigOption
	commands []AvailableCommand
	meta     json.RawMessage
	modes    clientModesV1
}

// clientOptions makes the options of a session what they are after a change.
type clientOptions func(before []SessionConfigOption) []SessionConfigOption

// clientModesV1 says how modes and models are changed in version 1.
type clientModesV1 struct {
	modes, models bool // by session/set_mode and session/set_model
}

// clientPrompted is the answer to a prompt: in version 1 the end of the turn, in
// version 2 a receipt.
type clientPrompted struct {
	messageID  MessageID
	stopReason StopReason
	usage      *Usage
	meta       json.RawMessage
}

// clientAnswer waits for the answer to a prompt. It must be called exactly once.
type clientAnswer func() (clientPrompted, error)

// clientUnit returns an error-only result.
func clientUnit[R any](_ *R, err error) error { return err }
