// Package idtest has a stream for tests on which ids of requests are used again, as JSON-RPC allows once a request has
// its answer.
package idtest

import (
	"encoding/json"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// Frugal returns a stream on which each request that is written has the lowest number that no unanswered one has.
// Cancellations are not translated.
func Frugal(s jsonrpc.Stream) jsonrpc.Stream {
	return &frugal{Stream: s, open: make(map[int]json.RawMessage)}
}

type frugal struct {
	jsonrpc.Stream
	mu   sync.Mutex
	open map[int]json.RawMessage // the ids of whoever writes
}

type message = map[string]json.RawMessage

// WriteFrame implements [jsonrpc.Stream].
func (f *frugal) WriteFrame(data []byte) error {
	var m message
	if json.Unmarshal(data, &m) == nil && m["method"] != nil && m["id"] != nil {
		n := 0
		f.mu.Lock()
		for f.open[n] != nil {
			n++
		}
		f.open[n] = m["id"]
		f.mu.Unlock()
		data = with(m, n)
	}
	return f.Stream.WriteFrame(data)
}

// ReadFrame implements [jsonrpc.Stream].
func (f *frugal) ReadFrame() (jsonrpc.Frame, error) {
	frame, err := f.Stream.ReadFrame()
	var m message
	var n int
	if err != nil || json.Unmarshal(frame.Data, &m) != nil || m["method"] != nil || json.Unmarshal(m["id"], &n) != nil {
		return frame, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[n] == nil {
		return frame, nil
	}
	frame = jsonrpc.Frame{Data: with(m, f.open[n]), Owned: true}
	delete(f.open, n)
	return frame, nil
}

// with returns a message with another id.
func with(m message, id any) []byte {
	m["id"], _ = json.Marshal(id)
	data, _ := json.Marshal(m)
	return data
}
