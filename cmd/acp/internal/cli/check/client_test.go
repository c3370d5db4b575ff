package check

import (
	"io"
	"net"
	"testing"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// A client is ended with the last of its connections, and waited for only when it
// has closed one.
func TestVisitor(t *testing.T) {
	ends := 0
	v := &visitor{proc: new(process.Process), open: 1, end: func() { ends++ }}
	s := &starter{}
	ours, theirs := net.Pipe()
	peer := v.peer(ours, s)
	if c := v.again(t.Context(), againWithin); c != nil {
		t.Error("a client that is still connected was waited for")
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Stream.ReadFrame(); err != io.EOF || !v.left.Load() {
		t.Errorf("%v, left %v", err, v.left.Load())
	}
	if !v.enter() {
		t.Fatal("the client cannot connect again")
	}
	ours, theirs = net.Pipe()
	defer theirs.Close()
	second := v.peer(ours, s)
	for i, stream := range []jsonrpc.Stream{peer.Stream, peer.Stream, second.Stream} {
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		if want := i / 2; ends != want {
			t.Errorf("close %d: ended %d times, want %d", i, ends, want)
		}
	}
	if v.enter() {
		t.Error("a client that is being ended may connect again")
	}
	if c := (*visitor)(nil).again(t.Context(), againWithin); c != nil {
		t.Error("nobody connected")
	}
}
