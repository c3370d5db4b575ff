package acp

import (
	"context"

	"github.com/goacp/acp/jsonrpc"
)

// Wrap returns the client's end of a chain in front of an agent whose stream is open, and
// is for [WrapTransport]: what the client opens is then for it the agent's transport.
// [ClientConn.Kill] kills the agent's process, and errors say how that ended. Agent must
// be set: its Transport is opened if the agent refuses a second handshake that a proxy of an
// earlier version makes necessary. A client that initializes again asks the same agent.
// The chain ends when the stream that is returned is closed, which waits for that, and
// closes the agent's stream.
//
//	t = acp.WrapTransport(t, (&acp.Conductor{Agent: acp.Component{Transport: t}, Proxies: proxies}).Wrap)
func (c *Conductor) Wrap(agent jsonrpc.Stream) jsonrpc.Stream {
	theirs, ours := jsonrpc.Pipe()
	for _, end := range []jsonrpc.Stream{theirs, ours} { // streams flow fast, and of small frames many wait
		end.(chainPipe).Buffer(maxPiped)
	}
	s := &chainStream{chainPipe: ours.(chainPipe), agent: agent, done: make(chan struct{})}
	run := newChain(context.Background(), c, agent)
	go func() {
		defer close(s.done)
		s.err = run.serve(theirs)
	}()
	return s
}

// chainPipe is an end of [jsonrpc.Pipe], which passes the frames that wait at once.
type chainPipe interface {
	jsonrpc.EagerStream
	jsonrpc.BatchStream
	Buffer(bytes int)
}

// maxPiped is how many bytes may wait in each direction between a client and a chain.
const maxPiped = 64 << 10

// chainStream is the client's end of a chain.
type chainStream struct {
	chainPipe
	agent jsonrpc.Stream
	done  chan struct{} // closed when the chain has ended and err is set
	err   error
}

// Unwrap returns the stream of the agent.
func (s *chainStream) Unwrap() jsonrpc.Stream { return s.agent }

// Close ends the chain and returns when it has ended.
func (s *chainStream) Close() error {
	err := s.chainPipe.Close()
	<-s.done
	return err
}

// ExitErr returns how the chain ended, or nil if it has not.
func (s *chainStream) ExitErr() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
