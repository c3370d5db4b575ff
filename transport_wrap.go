package acp

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// WrapTransport returns a transport that opens t and passes each stream it gets
// through wrap, which may record, change or delay what passes:
//
//	t = acp.WrapTransport(t, func(s jsonrpc.Stream) jsonrpc.Stream {
//		return jsonrpc.Tap(s, count)
//	})
//
// For the client and the agent that use it, it is still t: [ClientConn.Kill] kills
// the process that t has started, errors report how it ended, and a transport that
// can be opened again is opened again, which calls wrap again. The stream that wrap
// returns needs no other methods than those of [jsonrpc.Stream], and must close the
// one it was given when it is closed. To look at what passes, and not to change it,
// return a [jsonrpc.Tap], which keeps the stream as fast as it is.
func WrapTransport(t Transport, wrap func(jsonrpc.Stream) jsonrpc.Stream) Transport {
	return &wrappedTransport{t, wrap}
}

type wrappedTransport struct {
	inner Transport
	wrap  func(jsonrpc.Stream) jsonrpc.Stream
}

func (t *wrappedTransport) Open(ctx context.Context) (jsonrpc.Stream, error) {
	inner, err := openTransport(ctx, t.inner)
	if err != nil {
		return nil, err
	}
	outer := t.wrap(inner)
	if outer == nil {
		_ = inner.Close()
		return nil, errors.New("acp: WrapTransport: no stream")
	}
	for s := range layers(outer) {
		if sameStream(s, inner) {
			return outer, nil
		}
	}
	return &wrappedStream{outer, inner}, nil
}

// wrappedStream is a stream that does not say what it is around.
type wrappedStream struct {
	jsonrpc.Stream
	inner jsonrpc.Stream
}

func (s *wrappedStream) Unwrap() jsonrpc.Stream { return s.inner }

// sameStream compares streams, which may be of types that cannot be compared.
func sameStream(a, b jsonrpc.Stream) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// maxWrapped bounds how many transports or streams around each other are looked
// through.
const maxWrapped = 100

// innermost returns the transport that those of WrapTransport open.
func innermost(t Transport) Transport {
	for range maxWrapped {
		w, ok := t.(*wrappedTransport)
		if !ok {
			break
		}
		t = w.inner
	}
	return t
}

// layers yields a stream, the one it is around, and so on.
func layers(s jsonrpc.Stream) iter.Seq[jsonrpc.Stream] {
	return func(yield func(jsonrpc.Stream) bool) {
		for range maxWrapped {
			if w, ok := s.(*wrappedStream); ok && !yield(w.Stream) {
				return
			}
			if s == nil || !yield(s) {
				return
			}
			u, ok := s.(interface{ Unwrap() jsonrpc.Stream })
			if !ok {
				return
			}
			s = u.Unwrap()
		}
	}
}

// processOf returns the process behind a stream, or nil.
func processOf(s jsonrpc.Stream) *process.Process {
	for s := range layers(s) {
		if reflect.TypeOf(s).Kind() != reflect.Pointer { // ours are, and can be compared
			continue
		}
		if p, ok := processes.Load(s); ok {
			return p.(*process.Process)
		}
	}
	return nil
}
