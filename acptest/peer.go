package acptest

import (
	"context"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// ScriptedAgent returns the transport to an agent that plays a script; give it
// to [acp.Client.Connect]. The package documentation describes the language.
//
// The script must be played to its end: the test fails as soon as the client does
// something else, and when the test ends and steps are left. The script ends when the
// test's cleanup begins; close the client before that. The transport may be opened once,
// and once more for each !initialize and !reopen. In a testing/synctest bubble tb must be
// that of the bubble.
func ScriptedAgent(tb testing.TB, script string) acp.Transport {
	tb.Helper()
	return newScripted(tb, script, agentRole)
}

// ScriptedClient returns the transport to a client that plays a script, for
// [acp.Agent.Connect] or [acp.Agent.Serve]. It is otherwise like
// [ScriptedAgent]; it may be opened once, and once more for each !reopen.
func ScriptedClient(tb testing.TB, script string) acp.Transport {
	tb.Helper()
	return newScripted(tb, script, clientRole)
}

// A scriptedPeer is the transport to a peer in memory that plays a script.
type scriptedPeer struct {
	mu      sync.Mutex
	left    int              // times it may be opened
	ends    []jsonrpc.Stream // of the peer under test
	streams chan jsonrpc.Stream
	over    bool
}

func newScripted(tb testing.TB, script string, role role) *scriptedPeer {
	tb.Helper()
	steps, err := parseScript(script)
	if err != nil {
		tb.Fatal(err)
	}
	t := &scriptedPeer{left: 1}
	for _, s := range steps {
		if s.op == opReopen || s.op == opInitialize && role == agentRole {
			t.left++
		}
	}
	t.streams = make(chan jsonrpc.Stream, t.left)
	release, done := make(chan struct{}), make(chan struct{})
	p := newPlayer(role, steps, t.streams)
	p.release = release
	go func() {
		defer close(done)
		if err := p.play(context.Background()); err != nil {
			t.close() // rather than let the peer wait
			tb.Errorf("%v", err)
		}
	}()
	tb.Cleanup(func() {
		close(release)
		t.close()
		<-done
		for s := range t.streams { // opened but not used
			_ = s.Close()
		}
	})
	return t
}

// Open connects with the script.
func (t *scriptedPeer) Open(context.Context) (jsonrpc.Stream, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || t.over {
		return nil, acp.ErrReopen
	}
	t.left--
	under, script := jsonrpc.Pipe()
	t.ends = append(t.ends, under)
	t.streams <- script
	return under, nil
}

// close ends the script as if the peer under test had left: what it sent before that is
// still read.
func (t *scriptedPeer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	for _, s := range t.ends {
		_ = s.Close()
	}
	close(t.streams)
}
