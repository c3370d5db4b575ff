package acp

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestKeptUpdate: whoever keeps one update keeps the memory of that one, and not of
// those that came before and after it.
func TestKeptUpdate(t *testing.T) {
	const (
		updates = 600
		looked  = 300 // at: the reader and the session still hold some of the last
		keep    = 150
	)
	text := strings.Repeat("x", 200)
	v1Line, err := (&acpv1.SessionNotification{SessionID: "s", Update: &acpv1.AgentMessageChunk{MessageID: "m", Content: acpv1.Text(text)}}).AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	v2Line, err := (&acpv2.UpdateSessionNotification{SessionID: "s", Update: &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(text)}}).AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	for version, params := range map[int][]byte{1: v1Line, 2: v2Line} {
		var (
			all    []weak.Pointer[Update]
			texts  []weak.Pointer[byte]
			kept   *Update
			told   = make(chan struct{})
			client = &Client{MaxVersion: version, Update: func(_ context.Context, _ *ClientSession, u *Update) {
				all = append(all, weak.Make(u))
				texts = append(texts, weak.Make(unsafe.StringData(u.Text())))
				if len(all) == keep+1 {
					kept = u
				}
				if len(all) == updates {
					close(told)
				}
			}}
		)
		ready, err := client.ready()
		if err != nil {
			t.Fatal(err)
		}
		l := newLines(`{"jsonrpc":"2.0","method":"session/update","params":`+string(params)+"}\n", 50)
		c := newClientConn(t.Context(), ready, jsonrpc.NewLineStream(l, l), nil)
		p := c.newPeer(version)
		c.peer.Store(p)
		c.conn.SetMux(p.mux)
		c.known("s", clientRoot)
		l.say(updates)
		<-told
		alive := func() (n int) {
			runtime.GC()
			for i := range looked {
				if all[i].Value() != nil || texts[i].Value() != nil {
					n++
				}
			}
			return n
		}
		// What a stack that has not been looked at again refers to may take a
		// collection more.
		for i := 0; i < 50 && alive() > 1; i++ {
			runtime.Gosched()
		}
		if n := alive(); n != 1 || kept.Text() != text {
			t.Errorf("version %d: %d of %d updates are alive, and one is kept", version, n, looked)
		}
		runtime.KeepAlive(kept)
		_ = c.Close()
	}
}
