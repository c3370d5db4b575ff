package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// Connect opens the transport, which starts the agent if it is a
// [CommandTransport], and agrees with the agent on a protocol version.
//
// It asks for FirstVersion, by default the highest version. The initialize
// requests of the versions differ. So when the agent turns out to speak only the
// other version, by its answer or its error, it is asked again in that version:
// over the transport opened anew, which for a command is another process, or over
// the same connection if the transport cannot be opened again. If the transport
// can, Connect also tries the other version when the agent refuses with a code in
// the range of HTTP's, 400 to 499, or leaves without an answer: its process exits, or
// it closes the connection. A network that fails is not an answer, and Connect fails.
// An agent that repeats version 2 but answers in the shape of version 1 speaks version 1.
//
// ctx bounds all of Connect, and hooks see its values. It may end after Connect
// has returned: the connection stays open. When Connect fails, nothing is left
// running, and t has been opened and closed, unless it is [Stdio] or a command.
// For a command, ending the process adds up to [CommandTransport.CloseGrace] and
// TermGrace to what ctx allows. The error then says how the process ended, and
// quotes up to 200 bytes of the first line it wrote that was not a message:
// perhaps the program must be started in another way.
func (c *Client) Connect(ctx context.Context, t Transport) (*ClientConn, error) {
	client, err := c.ready()
	if err != nil {
		endTransport(ctx, t)
		return nil, err
	}
	conn, err := client.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	asked := client.FirstVersion
	answered, err := conn.initialize(ctx, asked)
	if err == nil && answered == asked {
		return conn, nil
	}
	first, other := err, lowestVersion+highestVersion-asked
	spoken := other >= client.MinVersion && other <= client.MaxVersion
	switch {
	case err == nil && answered == other && spoken:
		client.Logger.Info("acp: the agent speaks another version; connecting again", "version", answered)
	case err != nil && spoken && conn.maySpeak(other, err, clientReopens(t)):
		client.Logger.Info("acp: the agent refused; connecting again in the other version", "version", other, "error", err)
	default:
		if err == nil {
			err = fmt.Errorf("%w names protocol version %d; this client speaks %d to %d",
				ErrInitialize, answered, client.MinVersion, client.MaxVersion)
		}
		return nil, conn.fail(err)
	}
	conn, err = client.redial(ctx, t, conn)
	if err == nil {
		answered, err = conn.initialize(ctx, other)
		if err == nil && answered != other {
			err = fmt.Errorf("%w names protocol version %d instead of %d", ErrInitialize, answered, other)
		}
	}
	switch {
	case err == nil:
		return conn, nil
	case first != nil && err.Error() != first.Error():
		err = fmt.Errorf("%w; in version %d: %w", first, other, err)
	}
	if conn == nil {
		return nil, err
	}
	return nil, conn.fail(err)
}

func (c *Client) dial(ctx context.Context, t Transport) (*ClientConn, error) {
	stream, err := openTransport(ctx, t)
	if err != nil {
		return nil, err
	}
	conn := newClientConn(ctx, c, stream, processOf(stream))
	conn.transport = t
	return conn, nil
}

// redial opens the transport again. If that is impossible, it returns the old
// connection.
func (c *Client) redial(ctx context.Context, t Transport, old *ClientConn) (*ClientConn, error) {
	switch innermost(t).(type) {
	case *once:
		return old, nil
	case *CommandTransport:
		_ = old.fail(nil) // two processes at a time might get in each other's way
		return c.dial(ctx, t)
	}
	conn, err := c.dial(ctx, t)
	if errors.Is(err, ErrReopen) {
		return old, nil
	}
	_ = old.fail(nil)
	return conn, err
}

// clientReopens reports whether it is worth trying to open a transport again.
func clientReopens(t Transport) bool {
	_, ok := innermost(t).(*once)
	return !ok
}

// fail closes a connection that could not be initialized.
func (c *ClientConn) fail(err error) error {
	_ = c.Close()
	<-c.Done()
	c.idle.Wait()
	return err
}

// maySpeak reports whether an agent that answered initialize of one version with an
// error may speak the other. It may if the error names that version, or finds fault
// with the request, as agents do that expect members of the other version. Some agents
// have error codes of their own for that, or leave; trying again is worth it if a new
// stream can be had. A connection that broke says nothing about the agent, unless that
// is a process, which broke it.
func (c *ClientConn) maySpeak(other int, err error, reopens bool) bool {
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		if errors.Is(err, errShapeOfVersion1) {
			return true
		}
		return reopens && errors.Is(err, jsonrpc.ErrClosed) && (c.proc != nil || c.conn.Wait() == nil)
	}
	if said.Code >= 400 && said.Code < 500 {
		return reopens
	}
	switch said.Code {
	case jsonrpc.CodeUnsupportedVersion:
		var data struct{ Supported []int }
		if len(said.Data) == 0 || json.Unmarshal(said.Data, &data) != nil || data.Supported == nil {
			return true
		}
		return slices.Contains(data.Supported, other)
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInternalError, jsonrpc.CodeParseError:
		return true
	}
	return false
}

// initialize asks the agent in the given version and returns the version it
// answered in. If they are the same, the connection speaks that version from the
// next message on.
func (c *ClientConn) initialize(ctx context.Context, version int) (answered int, err error) {
	// The answer is read as it arrives: whatever follows it, perhaps in the same
	// write, is in the version that it names.
	var bad error
	var raw json.RawMessage
	peer := c.newPeer(version)
	err = c.conn.Call(ctx, methodInitialize, c.client.hello(version), &raw, jsonrpc.OnReply(func(result any, err error) {
		if raw, ok := result.(*json.RawMessage); ok && err == nil {
			answered, bad = c.initialized(peer, *raw)
		}
	}))
	if c.echoed.Load() {
		return 0, fmt.Errorf("%w is the request itself: it sends back what it is sent", ErrInitialize)
	}
	if err != nil {
		return 0, c.silence(fmt.Errorf("acp: initialize: %w", err))
	}
	if answered == 0 && bad == nil { // answered by middleware
		answered, bad = c.initialized(peer, raw)
	}
	return answered, bad
}

// silence explains why there is no answer to initialize, unless err is an answer.
func (c *ClientConn) silence(err error) error {
	if said := (*jsonrpc.Error)(nil); errors.As(err, &said) {
		return err
	}
	if errors.Is(err, jsonrpc.ErrClosed) && c.proc != nil {
		switch ended, exit := c.exited(); {
		case exit != nil:
			err = fmt.Errorf("%w: %w", err, exit)
		case ended:
			err = fmt.Errorf("%w: the agent exited with status 0 before it answered", err)
		}
	} else {
		err = c.explain(err)
	}
	if _, line := c.Noise(); line != "" {
		err = fmt.Errorf("%w; it wrote a line that is not a message: %q", err, line)
	}
	return err
}

const maxNoise = 200

// Noise returns how many frames from the agent were not messages so far, and the
// beginning of the first one that was a line of text: at most 200 bytes, without
// unprintable characters. Such frames are ignored. The usual cause is an agent
// that logs to its standard output. Each one is reported to Diagnose of
// [Client.Engine] as it arrives.
func (c *ClientConn) Noise() (frames uint64, first string) {
	st := c.conn.Stats()
	if line := c.noise.Load(); line != nil {
		first = *line
	}
	return st.Noise + st.Invalid, first
}

// diagnose reports what the connection noticed.
func (c *ClientConn) diagnose(e jsonrpc.Event) {
	switch e.Kind {
	case jsonrpc.EventNoise:
		c.heard(e.Data)
		c.client.Logger.Warn("acp: the agent wrote a line that is not a message", "bytes", e.Size)
	case jsonrpc.EventInvalidFrame:
		c.heard(e.Data)
	case jsonrpc.EventTooDeep:
		c.missed(e.Method, "one was nested too deeply")
	case jsonrpc.EventFrameTooLarge:
		c.missed(e.Method, "one was too large")
	}
	if f := c.client.Engine.Diagnose; f != nil {
		f(e)
	}
}

// missed has the replies in flight report an update that could not be read. Which
// session it was for is not known. Malformed updates are not reported in this
// way, because a loop that ends at the first error would then end at an update
// that no reader needs.
func (c *ClientConn) missed(method, why string) {
	if method != "session/update" {
		return
	}
	err := fmt.Errorf("%w: %s", ErrUpdatesLost, why)
	for _, s := range c.OpenSessions() {
		s.mu.Lock()
		replies := s.replies
		s.mu.Unlock()
		for _, r := range replies {
			r.buffer.misses(err)
		}
	}
}

// heard keeps the beginning of the first frame that was not a message.
func (c *ClientConn) heard(data []byte) {
	if c.noise.Load() != nil {
		return
	}
	line := strings.ToValidUTF8(string(data[:min(len(data), maxNoise)]), "")
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, line))
	if line != "" {
		c.noise.CompareAndSwap(nil, &line)
	}
}

// hello returns the params of initialize.
func (c *Client) hello(version int) any {
	if version == 2 {
		return &acpv2.InitializeRequest{ProtocolVersion: 2, Info: c.Info, Capabilities: c.capabilities(), Meta: c.Meta}
	}
	caps := translate.ClientCapabilitiesToV1(c.capabilities())
	caps.FS = clientFileCapabilities(c.Files)
	caps.Terminal = c.Terminals != nil
	mark(&caps.Session.Cursors, c.Cursors)
	caps.Meta = translate.ClientExtensions(c.ShowsTerminals, c.TerminalAuth)
	return &acpv1.InitializeRequest{
		ProtocolVersion: 1, ClientInfo: translate.ImplementationToV1(c.Info), ClientCapabilities: caps, Meta: c.Meta,
	}
}

// newPeer prepares for an agent of the given version.
func (c *ClientConn) newPeer(version int) *clientPeer {
	p := &clientPeer{mux: new(jsonrpc.Mux)}
	if version == 2 {
		p.proto = &clientV2{c: c}
	} else {
		p.proto = &clientV1{c: c}
	}
	p.proto.register(p.mux)
	if f := c.client.Extensions; f != nil {
		f(p.mux)
	}
	p.mux.StrictIDs = version == 2 // S11
	return p
}

// initialized reads the answer to initialize, the version before the rest (S59,
// S65).
func (c *ClientConn) initialized(p *clientPeer, raw json.RawMessage) (int, error) {
	answered, err := clientAnsweredVersion(raw)
	if err != nil || answered != p.proto.version() {
		return answered, err
	}
	if err := p.proto.initialized(p, raw); err != nil {
		if answered == 2 && shapedLikeVersion1(raw) {
			err = fmt.Errorf("%w: %w", errShapeOfVersion1, err)
		}
		return 0, fmt.Errorf("%w: %w", ErrInitialize, err)
	}
	c.peer.Store(p)
	c.conn.SetMux(p.mux)
	return answered, nil
}

// errShapeOfVersion1 means that an agent repeats version 2, which it was asked for,
// in an answer of version 1: it does not know what the version stands for.
var errShapeOfVersion1 = errors.New("it names version 2 and has the shape of version 1")

// shapedLikeVersion1 reports whether an answer to initialize that does not fit
// version 2 has members of version 1, or none that tell the versions apart.
func shapedLikeVersion1(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // it is an object: its version was read
	has := func(name string) bool { return members[name] != nil }
	return !has("info") && (has("agentInfo") || has("agentCapabilities") || !has("capabilities"))
}

// clientAnsweredVersion reads nothing but the version (S50).
func clientAnsweredVersion(raw json.RawMessage) (int, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return 0, fmt.Errorf("%w is not an object", ErrInitialize)
	}
	named := members["protocolVersion"]
	if len(named) > 0 && named[0] == '"' {
		return 0, fmt.Errorf("%w names the protocol version as a string, %.20s: it must be a number", ErrInitialize, named)
	}
	v, err := strconv.ParseFloat(string(named), 64)
	if err != nil || v != math.Trunc(v) || v < 1 || v > math.MaxUint16 {
		return 0, fmt.Errorf("%w has no protocol version", ErrInitialize)
	}
	return int(v), nil
}
