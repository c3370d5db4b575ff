package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// TestDecoded: an update is decoded once for all who watch a session, what is remembered is bounded, and nothing of
// sessions that nobody watches.
func TestDecoded(t *testing.T) {
	var c decodedUpdates
	record := func(seq uint64, size int) *engine.Record {
		return &engine.Record{Seq: seq, Kind: kindUpdate, Data: fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":%q}}}`, strings.Repeat("x", size))}
	}
	same := func(seq uint64, size int, want bool) {
		t.Helper()
		one, err1 := c.of("s", record(seq, size))
		two, err2 := c.of("s", record(seq, size))
		if err1 != nil || err2 != nil || (one == two) != want {
			t.Errorf("record %d: decoded once: %t, want %t; %v, %v", seq, one == two, want, err1, err2)
		}
	}
	c.join("s", 1)
	c.join("other", 1)
	same(1, 10, false)
	c.join("s", 1)
	same(2, 10, true)
	for seq := range uint64(maxDecoded + 100) {
		same(3+seq, 10, true)
	}
	if by := c.watch["s"].by; len(by) != maxDecoded || len(c.queue) != maxDecoded {
		t.Errorf("%d updates are remembered", len(by))
	}
	for seq := range uint64(100) {
		same(20_000+seq, 100<<10, true)
	}
	if by := c.watch["s"].by; len(by) != len(c.queue) || len(by) != 40 || c.bytes > maxDecodedBytes {
		t.Errorf("%d updates are remembered, of %d bytes", len(by), c.bytes)
	}
	same(30_000, maxDecodedBytes, false)
	child := &engine.Record{Seq: 40_000, Kind: kindChild, Data: []byte(`{"update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}},"child":"s.c"}`)}
	one, err1 := c.of("s", child)
	two, err2 := c.of("s", child)
	if err1 != nil || err2 != nil || one != two || one.child != "s.c" {
		t.Errorf("of a subagent: %v and %v; %v, %v", one, two, err1, err2)
	}
	c.join("s", -1)
	c.join("s", -1)
	if len(c.queue)+c.bytes != 0 {
		t.Errorf("%d updates are remembered for nobody", len(c.queue))
	}
	c.join("other", -1)
	// One session that several watch still, and one that they leave, as they do when it is deleted.
	for _, session := range []string{"s", "other"} {
		c.join(session, 1)
		c.join(session, 1)
		for seq := range uint64(10) {
			if _, err := c.of(session, record(seq, 10)); err != nil {
				t.Error(err)
			}
		}
	}
	size := c.bytes
	c.join("s", -1)
	for range 2 {
		if c.watch["s"] != nil {
			c.join("s", -1)
		}
		other := c.watch["other"]
		if len(other.by) != 10 || len(c.queue) != 10 || c.bytes != size/2 || slices.ContainsFunc(c.queue, func(d *decoded) bool { return d.in != other }) {
			t.Errorf("%d updates of %d bytes are remembered", len(c.queue), c.bytes)
		}
	}
	c.join("other", -1)
	c.join("other", -1)
	if len(c.watch) != 0 || len(c.queue) != 0 || c.bytes != 0 {
		t.Errorf("%v are watched, and %d updates of %d bytes are remembered", c.watch, len(c.queue), c.bytes)
	}
}

// TestLearned: what an agent says is not decoded again for those who watch, and an update that was learned is not taken
// for another one.
func TestLearned(t *testing.T) {
	var c decodedUpdates
	data := []byte(`{"update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}}`)
	said := &acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("x")}
	c.learn("s", &decoded{update: said, seq: 1, size: len(data)})
	if len(c.queue) > 0 {
		t.Error("it is remembered although nobody watches")
	}
	c.join("s", 1)
	c.learn("s", &decoded{update: said, seq: 1, size: len(data)})
	for range 2 {
		d, err := c.of("s", &engine.Record{Seq: 1, Kind: kindUpdate, Data: data, Hash: [32]byte{1}})
		if err != nil || d.update != acp.SessionUpdate(said) || d.mark == "" {
			t.Errorf("%+v, %v", d, err)
		}
	}
	longer := append([]byte(" "), data...)
	if d, err := c.of("s", &engine.Record{Seq: 1, Kind: kindUpdate, Data: longer}); err != nil || d.update == acp.SessionUpdate(said) {
		t.Errorf("of another record: %+v, %v", d, err)
	}
}
