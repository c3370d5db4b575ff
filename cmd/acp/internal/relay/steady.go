package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of a steady stream.
const (
	steadyFirst = 100 * time.Millisecond // before the first attempt
	steadyMost  = 2 * time.Second        // between two attempts
	steadyReply = 30 * time.Second       // for the answers that open the connection again

	maxPending = 64 << 20 // of requests without an answer, in bytes; those beyond that fail with the connection
	maxSteady  = 1024     // sessions that are opened again
	maxBacklog = 4096     // messages that arrive while the connection is opened again
)

// Steady returns a stream to a gateway that outlives its connections: when one breaks, it opens another, says initialize
// again, resumes the sessions that were open at the position of the last update, and sends again what has no
// answer. Whoever uses it does not notice. Prompts get the name of an operation, by which the gateway knows that they
// were sent before.
//
// It does so for what may pass, as [remote.Passes] says: not for more than 5 minutes, and for a few seconds if the
// gateway requires another token. The error of the stream is then why the last attempt has failed, and the first one.
//
// That is so only once the peer has shown that it is a gateway, by what it says in _meta of its answer to initialize, or by
// a position. With any other peer the first error ends the stream. Of what has no answer only prompts are certain to run once, so other requests that may change
// something fail, with an error that says so.
//
// A question of the agent that is open when the connection breaks is asked again by the gateway. If it is the same, the
// near side keeps the one it has, and its answer goes where it belongs.
//
// interrupted, if it is not nil, is called with why each attempt to return has failed, and with nil once one has not. What
// is read waits for it.
func Steady(open func(ctx context.Context) (jsonrpc.Stream, error), interrupted func(err error)) jsonrpc.Stream {
	if interrupted == nil {
		interrupted = func(error) {}
	}
	s := &steady{
		open: open, interrupted: interrupted, pending: make(map[string]*waiting), sessions: make(map[string]*steadySession),
		asks: make(map[string]*steadyAsk), byFar: make(map[string]*steadyAsk), up: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

type steady struct {
	open   func(ctx context.Context) (jsonrpc.Stream, error)
	ctx    context.Context // until the stream is closed
	cancel context.CancelCauseFunc

	interrupted func(err error)

	backlog []jsonrpc.Frame // of the reader

	opening sync.Mutex // held while the first connection is opened

	mu         sync.Mutex
	stream     jsonrpc.Stream // nil before the first message
	up         chan struct{}  // closed while there is a connection, and at the end
	isUp       bool
	err        error // why there is none any more
	gateway    bool  // the peer has shown that it is one
	generation int   // of connections, from 0
	initialize json.RawMessage
	pending    map[string]*waiting
	size       int // of pending, in bytes
	sessions   map[string]*steadySession
	asks       map[string]*steadyAsk // by the id that the near side knows
	byFar      map[string]*steadyAsk // by that of the connection
}

// waiting is a request of the near side that has no answer.
type waiting struct {
	data    []byte // nil if it is too large to be kept
	method  string
	session string
}

// A steadySession is a session that is open.
type steadySession struct {
	cwd      json.RawMessage
	servers  json.RawMessage
	position json.RawMessage // of the last update; nil if there was none
	cancel   []byte          // the message that cancels the turn that runs, in case it has not arrived; nil if none was sent
}

// A steadyAsk is a request of the agent's that the near side has not answered.
type steadyAsk struct {
	near, far json.RawMessage // ids; far is nil after the connection has broken
	method    string
	about     []byte // its params, without _meta
	answer    []byte // what the near side has answered meanwhile, or nil
}

// A message is the part of a message that a steady stream looks at.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// object is a JSON object whose members are kept as they are.
type object = map[string]json.RawMessage

func objectOf(raw json.RawMessage) object {
	var o object
	_ = json.Unmarshal(raw, &o) // nil if it is none
	return o
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// positionOf returns the position in _meta, or nil.
func positionOf(meta json.RawMessage) json.RawMessage {
	said := objectOf(meta)[ownmeta.Key]
	if of := objectOf(said); len(of["cursor"]) > 0 {
		position := object{}
		for _, name := range []string{"cursor", "mark", "part"} {
			if len(of[name]) > 0 {
				position[name] = of[name]
			}
		}
		return marshal(position)
	}
	return nil
}

// marshal encodes what can be encoded.
func marshal(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

// line returns a message as it is sent.
func (m *message) line() []byte {
	return marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		*message
	}{"2.0", m})
}

// WriteFrame implements [jsonrpc.Stream]. While there is no connection it waits for one.
func (s *steady) WriteFrame(data []byte) error {
	data = bytes.Clone(data)
	var m message
	if json.Unmarshal(data, &m) == nil {
		switch {
		case m.Method != "" && len(m.ID) > 0:
			data = s.asked(&m, data)
		case m.Method == "session/cancel":
			s.cancels(&m, data)
		case m.Method == "" && len(m.ID) > 0:
			if data = s.answers(&m, data); data == nil {
				return nil
			}
		}
	}
	for {
		stream, generation, err := s.connection()
		if err != nil {
			return err
		}
		if err = stream.WriteFrame(data); err == nil {
			return nil
		}
		s.mu.Lock()
		steady := s.gateway
		s.mu.Unlock()
		if !steady {
			return err
		}
		s.broke(generation)
		if m.Method != "" && len(m.ID) > 0 { // it is sent again with the others
			return nil
		}
	}
}

// connection returns the stream once there is one.
func (s *steady) connection() (jsonrpc.Stream, int, error) {
	s.opening.Lock() // others that write wait, and find what it has come to
	s.mu.Lock()
	if s.stream == nil && s.err == nil && s.generation == 0 {
		s.mu.Unlock()
		stream, err := s.open(s.ctx)
		s.mu.Lock()
		if err != nil {
			s.err = err
		} else if s.err != nil {
			_ = stream.Close()
		} else {
			s.stream, s.isUp = stream, true
		}
		select {
		case <-s.up: // by Close
		default:
			close(s.up)
		}
	}
	s.opening.Unlock()
	for {
		stream, generation, err, up, ok := s.stream, s.generation, s.err, s.up, s.isUp
		s.mu.Unlock()
		if err != nil || ok {
			return stream, generation, err
		}
		select {
		case <-up:
		case <-s.ctx.Done():
			return nil, 0, os.ErrClosed
		}
		s.mu.Lock()
	}
}

// broke has whoever writes wait for another connection. The reader opens it.
func (s *steady) broke(generation int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isUp && s.generation == generation {
		s.isUp, s.up = false, make(chan struct{})
		_ = s.stream.Close() // which the reader notices
	}
}

// asked remembers a request of the near side, and returns it as it is sent.
func (s *steady) asked(m *message, data []byte) []byte {
	params := objectOf(m.Params)
	if m.Method == "session/prompt" && params != nil {
		meta := objectOf(params["_meta"])
		own := objectOf(meta[ownmeta.Key])
		if len(own["operationId"]) == 0 {
			if own == nil {
				own = object{}
			}
			if meta == nil {
				meta = object{}
			}
			own["operationId"] = marshal("connect_" + rand.Text())
			meta[ownmeta.Key] = marshal(own)
			params["_meta"] = marshal(meta)
			data = (&message{ID: m.ID, Method: m.Method, Params: marshal(params)}).line()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "initialize" {
		s.initialize = bytes.Clone(m.Params)
	}
	w := &waiting{method: m.Method, session: text(params["sessionId"])}
	if len(s.pending) < MaxAsked {
		if s.size+len(data) <= maxPending {
			w.data = data
			s.size += len(data)
		}
		s.pending[string(m.ID)] = w
	}
	switch m.Method {
	case "session/load", "session/resume":
		s.begin(w.session, params)
	case "session/prompt":
		s.isOver(w.session)
	}
	return data
}

// cancels remembers that the near side cancels a turn: nobody says whether that has arrived.
func (s *steady) cancels(m *message, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.sessions[text(objectOf(m.Params)["sessionId"])]; x != nil {
		x.cancel = data
	}
}

// isOver is called when a cancellation is not about what runs in a session. The caller holds s.mu.
func (s *steady) isOver(id string) {
	if x := s.sessions[id]; x != nil {
		x.cancel = nil
	}
}

// begin remembers a session. The caller holds s.mu.
func (s *steady) begin(id string, params object) {
	if id != "" && len(s.sessions) < maxSteady && s.sessions[id] == nil {
		s.sessions[id] = &steadySession{cwd: params["cwd"], servers: params["mcpServers"]}
	}
}

// answers returns an answer of the near side as the connection knows it, or nil if it is for later, or for nobody.
func (s *steady) answers(m *message, data []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.asks[string(m.ID)]
	switch {
	case a == nil:
		return data
	case a.far == nil:
		a.answer = data
		return nil
	}
	s.drop(a)
	return (&message{ID: a.far, Result: m.Result, Error: m.Error}).line()
}

// drop forgets a question. The caller holds s.mu.
func (s *steady) drop(a *steadyAsk) {
	delete(s.asks, string(a.near))
	delete(s.byFar, string(a.far))
}

// Close implements [jsonrpc.Stream].
func (s *steady) Close() error {
	s.cancel(os.ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.stream == nil && s.err == nil
	s.err = cmp.Or[error](s.err, os.ErrClosed)
	if !s.isUp && (first || s.generation > 0) {
		select {
		case <-s.up:
		default:
			close(s.up)
		}
	}
	if s.stream == nil {
		return nil
	}
	return s.stream.Close()
}

// ReadFrame implements [jsonrpc.Stream].
func (s *steady) ReadFrame() (jsonrpc.Frame, error) {
	for {
		var f jsonrpc.Frame
		if len(s.backlog) > 0 {
			f, s.backlog = s.backlog[0], s.backlog[1:]
		} else {
			stream, generation, err := s.reading()
			if err != nil {
				return f, err
			}
			if f, err = stream.ReadFrame(); err != nil {
				if again := s.fails(generation, err); again != nil {
					return f, again
				}
				continue
			}
		}
		if data := s.arrived(f.Data); data != nil {
			f.Data = data
			return f, nil
		}
	}
}

// reading returns the stream to read from.
func (s *steady) reading() (jsonrpc.Stream, int, error) {
	s.mu.Lock()
	up := s.up
	started := s.stream != nil
	s.mu.Unlock()
	if !started {
		select {
		case <-up:
		case <-s.ctx.Done():
			return nil, 0, os.ErrClosed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream, s.generation, s.err
}
