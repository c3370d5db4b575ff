package acphttp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

const (
	maxBridgedMessage  = 16 << 20
	maxBridgedRequests = 64
)

// An MCPBridge serves MCP servers that are reached over the Agent Client Protocol to agents
// that do not take them so: its method Bridge is for [acp.Proxy.BridgeMCP].
//
//	proxy.BridgeMCP = new(acphttp.MCPBridge).Bridge
//
// A server gets an address of its own on the loopback interface, as long as it is needed,
// with a secret that each request must have in its header Authorization. It speaks
// streamable HTTP and answers each request with JSON; the server's notifications are left
// out. Messages have up to 16 MiB, and 64 requests run at once; more are refused. The
// zero value serves agents that take MCP servers over HTTP. It is safe for concurrent use;
// fields must not be changed once it is used. Experimental.
type MCPBridge struct {
	// Connect is a program with its arguments for agents that take MCP servers over
	// standard streams only. It connects its own with the server whose URL is in the
	// variable ACP_MCP_URL, and sends the headers in ACP_MCP_HEADERS, a JSON object, as
	// "acp mcp-connect" does. ACP_MCP_TYPE is "http".
	Connect []string
}

// Bridge implements [acp.Proxy.BridgeMCP].
func (m *MCPBridge) Bridge(ctx context.Context, b *acp.MCPBridgeRequest) (acp.MCPServer, func(), error) {
	if !b.HTTP && (!b.Stdio || len(m.Connect) == 0) {
		return nil, nil, errors.New("acphttp: the agent takes MCP servers neither over HTTP nor through a program that is known")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("acphttp: bridging an MCP server: %w", err)
	}
	s := &bridgedMCP{b: b, secret: "Bearer " + rand.Text(), free: make(chan struct{}, maxBridgedRequests)}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	stop := sync.OnceFunc(func() {
		_ = server.Close()
		serving.Wait()
	})
	url := "http://" + listener.Addr().String() + "/mcp"
	if b.HTTP {
		return &acp.MCPServerHTTP{Name: b.Name, URL: url, Headers: []acp.HTTPHeader{{Name: "Authorization", Value: s.secret}}}, stop, nil
	}
	headers, err := json.Marshal(map[string]string{"Authorization": s.secret})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return &acp.MCPServerStdio{Name: b.Name, Command: m.Connect[0], Args: m.Connect[1:], Env: []acp.EnvVariable{
		{Name: "ACP_MCP_URL", Value: url}, {Name: "ACP_MCP_TYPE", Value: "http"}, {Name: "ACP_MCP_HEADERS", Value: string(headers)},
	}}, stop, nil
}

// bridgedMCP is one server.
type bridgedMCP struct {
	b      *acp.MCPBridgeRequest
	secret string
	free   chan struct{} // filled by requests that run
}

// ServeHTTP takes a message of MCP.
func (s *bridgedMCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(s.secret)) != 1:
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	case r.Header.Get("Origin") != "": // of a web page
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	case r.Method == http.MethodDelete:
		return // there is nothing that a session holds
	case r.Method != http.MethodPost:
		http.Error(w, "only POST is answered", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBridgedMessage))
	if err != nil {
		http.Error(w, "the message cannot be read", http.StatusRequestEntityTooLarge)
		return
	}
	var m struct {
		ID     jsonrpc.ID      `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		answerMCP(w, jsonrpc.ID{}, nil, jsonrpc.ErrParse)
		return
	}
	if m.Method == "" || m.ID.IsZero() { // a notification, or an answer
		w.WriteHeader(http.StatusAccepted)
		return
	}
	select {
	case s.free <- struct{}{}:
		defer func() { <-s.free }()
	default:
		http.Error(w, "too many requests at once", http.StatusTooManyRequests)
		return
	}
	res, err := s.b.Call(r.Context(), m.Method, m.Params, nil)
	answerMCP(w, m.ID, res, err)
}

// answerMCP writes the answer to a request. Errors of the application are withheld.
func answerMCP(w http.ResponseWriter, id jsonrpc.ID, res json.RawMessage, err error) {
	out := struct {
		Version string          `json:"jsonrpc"`
		ID      jsonrpc.ID      `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{Version: "2.0", ID: id, Result: res}
	var failure *acp.MCPFailure
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &failure):
		out.Error = &jsonrpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
	case errors.As(err, &said):
		out.Error = said
	case err != nil:
		out.Error = jsonrpc.ErrInternal
	case len(res) == 0:
		out.Result = json.RawMessage("null")
	}
	if out.Error != nil {
		out.Result = nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		http.Error(w, "the answer cannot be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}
